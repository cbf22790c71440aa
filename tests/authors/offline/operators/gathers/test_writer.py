"""The offline author's gathers, against PyTorch on the simulator."""

import pytest

from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = """
import torch
import torch.nn.functional as F

def reference({arguments}):
    return {value}

def get_inputs():
    return [{inputs}]
"""
FLOATS = "torch.randn({shape}, dtype=torch.{dtype})"
PLACES = "torch.randint({low}, {high}, ({shape},))"


def source(value, shape, *indices, dtype="float32", low=0):
    """Problem of a float tensor x, and of index tensors i, j: (end of the indices, shape)."""
    inputs = [FLOATS.format(shape=shape, dtype=dtype)]
    inputs += [PLACES.format(low=low, high=high, shape=of) for high, of in indices]
    arguments = ["x", "i", "j"][: len(inputs)]
    return SOURCE.format(arguments=", ".join(arguments), value=value, inputs=", ".join(inputs))


GATHERS = {
    "constant padding of both sides": source("F.pad(x, (1, 2, 3, 0), value=0.5)", "2, 3, 9, 20"),
    "padding of the second to last dimension": source("F.pad(x, (0, 0, 2, 1))", "3, 9, 24"),
    "padding of one side, -inf": source("F.pad(x, (0, 5), value=float('-inf'))", "4, 7, 33"),
    "padding that crops": source("F.pad(x, (-2, 3, 1, -1), value=1.0)", "4, 9, 20"),
    "padding of fp16": source("F.pad(x, (0, 0, 1, 1), value=2.0)", "4, 9, 40", dtype="float16"),
    "mirrored padding": source("F.pad(x, (2, 1, 1, 3), mode='reflect')", "2, 3, 17, 18"),
    "repeated edges": source("F.pad(x, (2, 1, 0, 3), mode='replicate')", "2, 3, 17, 18"),
    "circular padding of one dimension": source("F.pad(x, (2, 3), mode='circular')", "3, 5, 33"),
    "circular padding": source("F.pad(x, (2, 1, 0, 3), mode='circular')", "2, 3, 17, 18"),
    "circular padding of a volume in fp16": source(
        "F.pad(x, (1, 0, 2, 1, 1, 1), mode='circular')", "2, 3, 5, 6, 7", dtype="float16"
    ),
    "circular padding that crops": source("F.pad(x, (-2, 3, 1, 1), mode='circular')", "2, 3, 9, 20"),
    "circular padding in front of a convolution": source(
        "F.relu(F.conv2d(F.pad(x, (1, 1, 1, 1), mode='circular'), x[:4, :, :3, :3]))", "5, 4, 9, 10"
    ),
    "circular padding twice, and of a sum": source(
        "F.pad(F.pad(x + 1, (1, 1), mode='circular'), (2, 0), mode='circular') * 2", "3, 5, 20"
    ),
    "a flip": source("x.flip(-1)", "3, 5, 40"),
    "a flip of rows in bf16": source("x.flip(0, 1)", "3, 5, 40", dtype="bfloat16"),
    "a roll forward": source("torch.roll(x, 3, 1)", "3, 16, 24"),
    "rolls of two dimensions": source("torch.roll(x, (-3, 2), (1, 2))", "3, 16, 24"),
    "a nearest upsampling": source("F.interpolate(x, scale_factor=2)", "2, 3, 8, 9"),
    "a nearest upsampling of one dimension": source("F.interpolate(x, scale_factor=3)", "2, 5, 16"),
    "an embedding": source("F.embedding(i, x)", "50, 64", (50, "4, 9")),
    "an embedding in odd rows": source("F.embedding(i, x)", "50, 33", (50, "4, 9")),
    "an embedding with its scale and its bias": source(
        "F.embedding(i, x) * 2.0 + x[0]", "50, 64", (50, "70")
    ),
    "selected rows": source("torch.index_select(x, 0, i)", "50, 64", (50, "30")),
    "selected columns": source("torch.index_select(x, 1, i)", "20, 50", (50, "30")),
    "indexed columns": source("x[:, i]", "20, 50", (50, "30")),
    "negative indices": source("x[:, i]", "20, 50, 16", (50, "30"), low=-50),
    "pairs of indices": source("x[i, :, j]", "20, 6, 30", (20, "5, 8"), (30, "8")),
    "neighbouring pairs of indices": source("x[:, i, j]", "6, 20, 30", (20, "5, 1"), (30, "1, 8")),
    "gathered elements": source("torch.gather(x, 1, i)", "20, 50", (50, "20, 40")),
    "gathered rows, fewer than there are": source("torch.gather(x, 0, i)", "20, 50", (20, "30, 40")),
    "gathered elements of one row": source("torch.gather(x, 1, i)", "20, 50", (50, "1, 40")),
    "gathered rows, turned": source("torch.gather(x, 0, i).flip(1)", "20, 50", (20, "30, 40")),
    "one row by index": source("x[i]", "20, 50", (20, "1")),
    "one row of pairs of indices": source("x[i, :, j]", "20, 6, 30", (20, "1, 8"), (30, "1, 1")),
    "a gather in front of element-wise work": source("F.gelu(x[:, i])", "20, 50", (50, "30")),
    "a flip of padded rows": source("F.pad(x, (1, 2), value=3.0).flip(0)", "20, 50"),
    "columns of rolled rows": source("torch.roll(x, 3, 0)[:, i]", "16, 50", (50, "30")),
    "padded columns by index": source("F.pad(x[:, i], (0, 0, 1, 1))", "16, 50, 8", (50, "30")),
    "an index of an index": source("x[i][:, j]", "20, 50", (20, "30"), (50, "40")),
    "an index along the same dimension twice": source("x[i][j]", "20, 50", (20, "30"), (30, "40")),
    "padding with two values": source("F.pad(F.pad(x, (1, 0)), (0, 0, 1, 0), value=1.0)", "20, 50"),
    "the first rows of a table": source(
        "x[torch.arange(i.shape[0], device=i.device)] + i[:, None]", "20, 50", (9, "13")
    ),
    "a padded row sum": source("F.pad(x, (1, 1)).sum(-1)", "20, 50"),
}


@pytest.mark.slow
@pytest.mark.every(test=54, long=3)
@pytest.mark.parametrize("name", GATHERS)
def test_every_revision_is_right(offline_simulator, name):
    answer = offline_simulator.ask(name, GATHERS[name])
    verdicts = [entry["verdict"] for entry in answer.get("revisions", [])]
    assert verdicts, answer
    assert set(verdicts) == {"right"}, answer


@pytest.mark.slow
def test_the_menu_fits_the_way():
    assert menu_of(GATHERS["selected rows"]) == ["gather-vectors", "gathers-in-flight"]
    assert menu_of(GATHERS["selected columns"]) == ["warps-along-rows"]


@pytest.mark.slow
def test_several_gathers_are_one_kernel():
    text = write_of(GATHERS["mirrored padding"])
    assert text.count("@cute.kernel") == 1


@pytest.mark.slow
def test_places_that_depend_on_the_size_are_declined():
    text = source("F.pad(x, (x.shape[-1] // 4, 0))", "64, 64, 4096")
    with pytest.raises(Declined, match="size"):
        menu_of(text)


def menu_of(text):
    return [item.name for item in OperatorsWriter().menu(facts_of(text)[1])]


def write_of(text):
    return OperatorsWriter().write(*facts_of(text), ()).source


def facts_of(text):
    problem = Problem(name="given", source=text, form=ProblemForm.FUNCTION, function="reference")
    return problem, trace_facts(problem)
