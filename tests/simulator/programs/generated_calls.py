"""Kernels of the offline author, called with tensors of unusual layout, type and surroundings."""

import importlib.util
import threading
from pathlib import Path

import torch

from cutegen_nb.authors.offline.author import WRITERS
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

PRODUCT = """
def reference(x, y):
    return torch.relu(x @ y)

def get_inputs():
    return [torch.randn(12, 20), torch.randn(20, 8)]
"""
SUM = """
def reference(x, y):
    return x + y

def get_inputs():
    return [torch.randn(6, 20), torch.randn(6, 20)]
"""
PRODUCT_AND_SOFTMAX = """
def reference(x, y):
    return torch.softmax(torch.softmax(x, 1) @ y, 1)

def get_inputs():
    return [torch.randn(12, 20), torch.randn(20, 8)]
"""
SCAN = """
def reference(x):
    return torch.cumsum(x, 1)

def get_inputs():
    return [torch.randn(4, 64)]
"""
TYPES = """
def reference(half, other, mask, count):
    return half * 2, other + 1, torch.logical_not(mask), count * 3

def get_inputs():
    return [
        torch.randn(5, 7).half(), torch.randn(5, 7).bfloat16(), torch.rand(5, 7) > 0.5,
        torch.randint(0, 9, (5, 7)),
    ]
"""


def randn(*shape, **options):
    return torch.randn(*shape, device="cuda", **options)


def written(source):
    """The offline author's first kernel of a problem, as a module's ModelNew."""
    problem = Problem(
        name="calls", source=f"import torch\n{source}", form=ProblemForm.FUNCTION, function="reference"
    )
    facts = trace_facts(problem)
    writer = next(item for item in WRITERS if item.accepts(facts))
    path = Path("candidate.py")
    path.write_text(writer.write(problem, facts, ()).source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ModelNew()


def strides_of_single_rows_do_not_matter(simulation):
    model = written(PRODUCT)
    x, y = randn(1, 20), randn(20, 8)
    for stride in (20, 77, 1):
        row = torch.as_strided(x, (1, 20), (stride, 1))
        assert torch.allclose(model(row, y), torch.relu(x @ y), atol=1e-5)
    column = randn(20, 1)
    for stride in (1, 13):
        given = torch.as_strided(column, (20, 1), (1, stride))
        assert torch.allclose(model(x, given), torch.relu(x @ column), atol=1e-5)


def transposed_and_shifted_tensors_are_compiled_for_anew(simulation):
    model = written(PRODUCT)
    x, y, room = randn(12, 20), randn(20, 8), randn(12 * 20 + 1)
    shifted = room[1:].view(12, 20)
    assert shifted.data_ptr() % 16 != 0
    for given in (x, shifted, x.t().contiguous().t(), x):
        assert torch.allclose(model(given, y), torch.relu(given @ y), atol=1e-5)
    assert len(model._compiled) == 3


def shifted_tensors_of_loops_are_copied(simulation):
    model = written(SUM)
    x, room = randn(6, 20), randn(6 * 20 + 3)
    shifted = room[3:].view(6, 20)
    assert torch.equal(model(x, shifted), x + shifted)
    assert torch.equal(model(shifted, x), x + shifted)
    assert len(model._compiled) == 1


def other_shapes_are_compiled_for_anew(simulation):
    model = written(SUM)
    for shape in ((6, 20), (3, 7), (1, 1), (6, 20)):
        x, y = randn(shape), randn(shape)
        assert torch.equal(model(x, y), x + y)
    assert len(model._compiled) == 3


def every_type_is_passed(simulation):
    half, other = randn(5, 7).half(), randn(5, 7).bfloat16()
    mask, count = randn(5, 7) > 0, randn(5, 7).mul(9).long()
    found = written(TYPES)(half, other, mask, count)
    for got, want in zip(found, (half * 2, other + 1, ~mask, count * 3), strict=True):
        assert got.dtype == want.dtype
        assert torch.equal(got, want)


def several_kernels_of_a_module(simulation):
    model = written(PRODUCT_AND_SOFTMAX)
    x, y = randn(12, 20), randn(20, 8)
    for _ in range(2):
        assert torch.allclose(model(x, y), torch.softmax(torch.softmax(x, 1) @ y, 1), atol=1e-5)
    assert len(model._compiled) > 1


def tensors_with_gradients(simulation):
    x, y = randn(12, 20, requires_grad=True), randn(20, 8)
    assert torch.allclose(written(PRODUCT)(x, y), torch.relu(x.detach() @ y), atol=1e-5)
    x = randn(4, 64, requires_grad=True)
    assert torch.allclose(written(SCAN)(x * 1), torch.cumsum(x.detach(), 1), atol=1e-5)


def another_stream_and_a_graph(simulation):
    model = written(PRODUCT_AND_SOFTMAX)
    x, y = randn(12, 20), randn(20, 8)
    other = torch.cuda.Stream()
    other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        expected = model(x, y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = model(x, y)
    found.zero_()
    graph.replay()
    assert torch.equal(found, expected)
    x.mul_(2)
    graph.replay()
    assert torch.allclose(found, torch.softmax(torch.softmax(x, 1) @ y, 1), atol=1e-5)


def another_thread(simulation):
    model = written(SUM)
    x, y, found = randn(6, 20), randn(6, 20), []
    for _ in range(2):
        thread = threading.Thread(target=lambda: found.append(model(x, y)))
        thread.start()
        thread.join()
    assert all(torch.equal(one, x + y) for one in (*found, model(x, y)))
    assert len(found) == 2


CASES = (
    strides_of_single_rows_do_not_matter,
    transposed_and_shifted_tensors_are_compiled_for_anew,
    shifted_tensors_of_loops_are_copied,
    other_shapes_are_compiled_for_anew,
    every_type_is_passed,
    several_kernels_of_a_module,
    tensors_with_gradients,
    another_stream_and_a_graph,
    another_thread,
)
