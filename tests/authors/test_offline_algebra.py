"""Kernels of the offline author that sum before a convolution multiplies, on the simulator."""

import pytest

pytestmark = pytest.mark.slow

PROBLEMS = {
    "mean of a transposed convolution": (
        "functional.conv_transpose2d(x, y, z).mean((2, 3), keepdim=True).logsumexp(1)",
        ("torch.rand(8, 16, 96, 80)", "torch.randn(16, 24, 3, 3)", "torch.randn(24)"),
    ),
    "mean of one with a step and cut edges": (
        "(functional.conv_transpose2d(x, y, z, 2, 1, 1) * 0.5).mean((2, 3))",
        ("torch.rand(8, 16, 64, 48)", "torch.randn(16, 24, 3, 3)", "torch.randn(24)"),
    ),
    "mean over the depth": (
        "torch.softmax(functional.conv_transpose3d(x, y, z, 1, 1).mean(2, keepdim=True), 1)",
        ("torch.rand(4, 6, 24, 32, 36)", "torch.randn(6, 10, 3, 3, 3)", "torch.randn(10)"),
    ),
    "sum over the width": (
        "functional.conv2d(x, y, z, 1, 1).sum(3)",
        ("torch.rand(4, 6, 72, 64)", "torch.randn(10, 6, 3, 3)", "torch.randn(10)"),
    ),
    "average pooling of a linear layer": (
        "torch.relu(functional.avg_pool1d(functional.linear(x, y, z).unsqueeze(1), 16).squeeze(1)).amax(1)",
        ("torch.rand(96, 200)", "torch.randn(320, 200)", "torch.randn(320)"),
    ),
    "average pooling": (
        "torch.sigmoid(functional.avg_pool2d(functional.conv2d(x, y, z), 4)).sum((1, 2, 3))",
        ("torch.rand(8, 6, 100, 84)", "torch.randn(10, 6, 3, 3)", "torch.randn(10)"),
    ),
}


@pytest.mark.every(test=2)
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_sums_are_right_and_less_work(offline_simulator, name):
    value, given = PROBLEMS[name]
    source = (
        f"import torch\nfrom torch.nn import functional\ndef reference(x, y, z): return {value}\n"
        f"def get_inputs(): return [{', '.join(given)}]\n"
    )
    first, summed = (
        offline_simulator.ask("given", source, applied=applied) for applied in ([], ["algebra-first"])
    )
    assert [entry["verdict"] for answer in (first, summed) for entry in answer["revisions"]] == ["right"] * 2
    before, after = (answer["revisions"][0]["counters"]["instructions"] for answer in (first, summed))
    assert after < 0.6 * before
