"""The offline author's element-wise kernels, reductions, softmax, norms and losses on the simulator."""

import pytest

pytestmark = pytest.mark.slow

PROBLEMS = {
    "broadcasts of a row, a column and a number": """
def reference(x, row, column, number):
    return torch.relu(x + row) * column - number

def get_inputs():
    return [torch.randn(37, 12), torch.randn(12), torch.randn(37, 1), torch.randn(())]
""",
    "several outputs of several dtypes": """
def reference(x, y):
    return x * y, (x > y), (x.float() + 1).to(torch.bfloat16)

def get_inputs():
    return [torch.randn(5, 33).half(), torch.randn(33).half()]
""",
    "a tensor and its transpose": """
def reference(x):
    return x + x.t()

def get_inputs():
    return [torch.randn(20, 20)]
""",
    "a permuted input and a slice": """
def reference(x, y):
    return x.permute(2, 0, 1) * y[:, 1:, ::2]

def get_inputs():
    return [torch.randn(4, 6, 3), torch.randn(3, 5, 12)]
""",
    "a rotary embedding of two halves": """
def reference(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)

def get_inputs():
    return [torch.randn(2, 6, 3, 16), torch.randn(6, 1, 8), torch.randn(6, 1, 8)]
""",
    "a rotary embedding whose halves change places": """
def turned(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)

def reference(q, k, cos, sin):
    cos, sin = cos.cos().unsqueeze(1), sin.unsqueeze(1)
    return q * cos + turned(q) * sin, k * cos + turned(k) * sin

def get_inputs():
    return [torch.randn(2, 3, 6, 16), torch.randn(2, 1, 6, 16), torch.randn(2, 6, 16), torch.randn(2, 6, 16)]
""",
    "every second element, stacked again": """
def reference(x, y):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a - y, b + y], -1).flatten(-2), torch.stack([a, b])

def get_inputs():
    return [torch.randn(5, 7, 12), torch.randn(6)]
""",
    "parts of several widths in half precision": """
def reference(x, y, z):
    return torch.cat([x.relu(), y * 2, z], 1)

def get_inputs():
    return [torch.randn(4, 16, 3).half(), torch.randn(4, 5, 3).half(), torch.randn(4, 8, 3).half()]
""",
    "one tensor twice in a row, then softmax": """
def reference(x):
    return torch.softmax(torch.cat([x, x], -1), -1)

def get_inputs():
    return [torch.randn(5, 64)]
""",
    "rows beside their mean and largest element": """
def reference(x):
    mean = x.mean(-1, keepdim=True)
    return torch.cat([x - mean, mean, x.amax(-1, keepdim=True)], -1)

def get_inputs():
    return [torch.randn(6, 33)]
""",
    "planes of a tensor": """
def reference(x):
    return x[:, 0] * x[:, 1] + x[:, 2].exp(), x[:, :, 3] - x[:, :, 0]

def get_inputs():
    return [torch.randn(6, 3, 20)]
""",
    "gates of a recurrent cell": """
def reference(x, c):
    i, f, g, o = x.split([24, 24, 24, 24], 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c

def get_inputs():
    return [torch.randn(8, 96), torch.randn(8, 24)]
""",
    "integers and booleans": """
def reference(x, mask):
    return torch.where(mask, x * 3 - 1, -x), torch.logical_xor(mask, x > 2), x.sum(), x.amax(0), mask.any(1)

def get_inputs():
    return [torch.randint(0, 9, (6, 11)), torch.rand(6, 11) > 0.5]
""",
    "remainders and quotients of integers": """
def reference(x, y):
    quotients = x // 7, torch.div(x, y, rounding_mode="trunc"), torch.div(x, y, rounding_mode="floor")
    return *quotients, x % y, x.remainder(5), x.fmod(-5)

def get_inputs():
    return [torch.randint(-40, 40, (6, 11)), torch.tensor([[-3], [2], [5], [-7], [1], [-1]])]
""",
    "an odd number of elements": """
def reference(x):
    return torch.nn.functional.gelu(x)

def get_inputs():
    return [torch.randn(1021)]
""",
    "every reduction over the middle": """
def reference(x):
    return x.sum(1), x.mean(1, keepdim=True), x.amax(1), x.min(1)[0], x.argmax(1), x.prod(1), x.var(1)

def get_inputs():
    return [torch.randn(3, 9, 20) * 0.5 + 1]
""",
    "places of the first of equal extremes": """
def reference(x):
    return x.argmax(-1), x.argmin(-1), x.argmax()

def get_inputs():
    return [torch.randint(0, 3, (40, 50)).float()]
""",
    "softmax over each dimension": """
def reference(x):
    return torch.softmax(x, 0), torch.log_softmax(x, 1), torch.softmax(x, 2)

def get_inputs():
    return [torch.randn(6, 7, 65) * 5]
""",
    "softmax of masked rows": """
def reference(x, mask):
    return torch.softmax(x.masked_fill(mask, float("-inf")), -1)

def get_inputs():
    mask = torch.rand(600, 130) > 0.7
    mask[:, 0] = False
    return [torch.randn(600, 130), mask]
""",
    "layer norm in half precision": """
def reference(x, weight, bias):
    return torch.nn.functional.layer_norm(x, (96,), weight, bias)

def get_inputs():
    return [(torch.randn(700, 96) + 3).half(), torch.rand(96).half(), torch.randn(96).half()]
""",
    "a norm whose mean is far from zero": """
def reference(x):
    return torch.nn.functional.layer_norm(x, (4, 4000))

def get_inputs():
    return [torch.randn(3, 4, 4000) + 1000]
""",
    "root mean square over channels": """
def reference(x):
    return x / torch.sqrt(torch.mean(x ** 2, dim=1, keepdim=True) + 1e-5)

def get_inputs():
    return [torch.randn(4, 16, 8, 8)]
""",
    "a norm of everything": """
def reference(x):
    return x / torch.norm(x, p="fro")

def get_inputs():
    return [torch.randn(9, 700)]
""",
    "losses": """
def reference(x, y):
    import torch.nn.functional as F
    return F.mse_loss(x, y), F.smooth_l1_loss(x, y), F.kl_div(torch.log(x), y, reduction="batchmean")

def get_inputs():
    return [torch.softmax(torch.randn(30, 70), -1), torch.softmax(torch.randn(30, 70), -1)]
""",
    "cross entropy": """
def reference(x, target):
    return torch.nn.functional.cross_entropy(x, target)

def get_inputs():
    return [torch.randn(20, 33), torch.randint(0, 33, (20,))]
""",
    "a reduction of a reduction": """
def reference(x):
    return torch.logsumexp(x.sum(2), (0, 1)), x.amax((0, 2)) - x.mean(1).amax()

def get_inputs():
    return [torch.randn(5, 6, 7)]
""",
}

MODULE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, {arguments}):
        super(Model, self).__init__()
        {init}

    def forward(self, x):
        return {value}

{sizes}

def get_inputs():
    return [torch.rand({shape})]

def get_init_inputs():
    return [{given}]
"""

MODULES = {
    "batch norm": {"init": "self.norm = nn.BatchNorm2d(features)", "value": "self.norm(x)"},
    "a parameter of its own": {
        "init": "self.scale = nn.Parameter(torch.rand(features, 1, 1))",
        "value": "torch.tanh(x) * self.scale",
    },
    "instance norm": {
        "init": "self.norm = nn.InstanceNorm2d(features, affine=True)",
        "value": "self.norm(x)",
    },
    "group norm": {"init": "self.norm = nn.GroupNorm(4, features)", "value": "self.norm(x)"},
}


ENDS = (0, -1)
"""The first revision and the last."""


def declined_or_revisions(offline_simulator, source, **options):
    answer = offline_simulator.ask("given", source, **options)
    assert "error" not in answer, answer["error"]
    return answer


@pytest.mark.every(test=18, long=3)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_first_and_the_last_revision_are_right(offline_simulator, name):
    answer = declined_or_revisions(offline_simulator, f"import torch\n{PROBLEMS[name]}", steps=ENDS)
    assert "declined" not in answer, answer
    assert {entry["verdict"] for entry in answer["revisions"]} == {"right"}


@pytest.mark.first(1)
@pytest.mark.parametrize("name", MODULES)
def test_modules_with_state_are_right_at_a_size_other_than_the_file_s(offline_simulator, name):
    source = MODULE.format(
        arguments="features",
        sizes="batch = 48\nfeatures = 64\nside = 96",
        shape="batch, features, side, side",
        given="features",
        **MODULES[name],
    )
    answer = declined_or_revisions(offline_simulator, source, steps=ENDS)
    assert "declined" not in answer, answer
    assert {entry["verdict"] for entry in answer["revisions"]} == {"right"}


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("value", "counter"),
    [("torch.softmax(x, 1)", "sectors"), ("x.sum(0)", "instructions"), ("torch.relu(x)", "sectors")],
)
def test_every_revision_is_right_and_some_later_one_does_less_work_than_the_first(
    offline_simulator, value, counter
):
    source = (
        f"import torch\ndef reference(x): return {value}\ndef get_inputs(): return [torch.rand(1024, 512)]\n"
    )
    revisions = declined_or_revisions(offline_simulator, source)["revisions"]
    assert {entry["verdict"] for entry in revisions} == {"right"}
    first, *later = [entry["counters"][counter] for entry in revisions]
    assert min(later) < first


@pytest.mark.first(1)
@pytest.mark.parametrize("value", ["torch.softmax(x, 1)", "torch.exp(x)", "torch.softmax(x, 0)", "x.sum()"])
def test_offsets_of_64_bits_where_32_are_too_few(offline_simulator, value):
    source = (
        f"import torch\ndef reference(x): return {value}\ndef get_inputs(): return [torch.rand(700, 64)]\n"
    )
    answer = declined_or_revisions(offline_simulator, source, steps=ENDS, largest_offset=1000)
    assert {entry["verdict"] for entry in answer["revisions"]} == {"right"}


LAYERS = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layers = self._layers(size)
        self.add_module("last-norm", nn.LayerNorm(size))

    def _layers(self, size):
        return nn.Sequential(nn.Linear(size, 2 * size), nn.ReLU(), nn.Linear(2 * size, size))

    def forward(self, x):
        return getattr(self, "last-norm")(self.layers(x))

def get_inputs():
    return [torch.rand(24, 16)]

def get_init_inputs():
    return [16]
"""


@pytest.mark.long
def test_layers_of_a_sequential_that_a_method_makes(offline_simulator):
    answer = declined_or_revisions(offline_simulator, LAYERS)
    assert {entry["verdict"] for entry in answer["revisions"]} == {"right"}


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("torch.cummax(x, 1)[1]", "cummax"),
        ("torch.sort(x)[0]", "sort"),
        ("torch.randn_like(x) + x", "draws random numbers"),
    ],
)
def test_what_it_cannot_write_it_declines_by_name(offline_simulator, value, named):
    source = f"import torch\ndef reference(x): return {value}\ndef get_inputs(): return [torch.rand(8, 8)]\n"
    answer = declined_or_revisions(offline_simulator, source)
    assert named in answer["declined"]
    assert answer["declined"].count(".") <= 3, "one sentence"


BESIDE_PYTORCH = {
    "a convolution and what follows": (
        "conv",
        MODULE.format(
            arguments="features",
            init="self.conv = nn.Conv2d(features, 12, 3, padding=1)",
            value="torch.nn.functional.hardswish(self.conv(x)) * 0.5",
            sizes="features = 4",
            shape="2, features, 10, 10",
            given="features",
        ),
    ),
    "a kernel before PyTorch's product": (
        "matmul",
        """
import torch
def reference(x): return torch.relu(x) @ x.T
def get_inputs(): return [torch.randn(8, 12)]
""",
    ),
    "a linear layer and a softmax": (
        "matmul",
        MODULE.format(
            arguments="features",
            init="self.linear = nn.Linear(features, 40)",
            value="torch.softmax(self.linear(x), 1)",
            sizes="features = 20",
            shape="30, features",
            given="features",
        ),
    ),
    "two products that a kernel joins": (
        "matmul",
        """
import torch
def reference(x, y): return torch.relu(x @ y) + (y.T @ x.T).T.sum(1, keepdim=True)
def get_inputs(): return [torch.rand(12, 20), torch.rand(20, 9)]
""",
    ),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("name", BESIDE_PYTORCH)
def test_kernels_beside_pytorchs_own_part_are_right(offline_simulator, name):
    family, source = BESIDE_PYTORCH[name]
    answer = declined_or_revisions(offline_simulator, source, steps=ENDS, library=[family])
    assert "declined" not in answer, answer
    assert [entry["verdict"] for entry in answer["revisions"]] == ["right"] * 2


@pytest.mark.parametrize(
    ("value", "library", "said"),
    [
        ("x @ x", ["matmul"], "--library matmul leaves no part of this problem to a kernel"),
        ("torch.sort(x)[0] + 1", ["pool"], "sort"),
    ],
)
def test_what_it_cannot_leave_to_pytorch_it_declines(offline_simulator, value, library, said):
    source = f"import torch\ndef reference(x): return {value}\ndef get_inputs(): return [torch.rand(8, 8)]\n"
    assert said in declined_or_revisions(offline_simulator, source, library=library)["declined"]
