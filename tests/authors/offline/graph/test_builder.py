"""New nodes: names that are free, shapes as PyTorch gives them, and nothing added where nothing changes."""

import pytest

from cutegen_nb.authors.offline.graph.builder import GraphBuilder
from cutegen_nb.core.graph import Ref


@pytest.fixture
def build(traced):
    graph = traced("torch.relu(x) @ y", "torch.rand(6, 8)", "torch.rand(8, 4)").full.graph
    return GraphBuilder(graph)


def test_a_taken_name_gets_a_number(build):
    names = [build.number("mul", Ref("x"), 2.0).name for _ in range(2)]
    assert names == ["mul", "mul_2"]
    assert build.number("x", Ref("x"), 2.0).name == "x_2"


def test_results_have_the_shapes_that_pytorch_gives_them(build):
    part = build.slice(Ref("x"), 1, 2, 5)
    assert build.spec(part).shape == (6, 3)
    assert build.spec(build.permute(part, (1, 0))).strides == (6, 1)
    assert build.spec(build.cat([part, part], 1)).shape == (6, 6)
    assert build.spec(build.total(Ref("x"), (1,))).shape == (6, 1)
    assert build.spec(build.product(Ref("x"), Ref("y"))).shape == (6, 4)
    assert build.spec(build.step("aten.add.Tensor", (Ref("y"), build.total(Ref("y"), (0,))))).shape == (8, 4)
    assert build.spec(build.numbers("div", Ref("x"), (6, 8))).dtype == "float32"


def test_what_changes_nothing_adds_no_node(build):
    x = Ref("x")
    same = [build.view(x, (6, 8)), build.slice(x, 0, 0, 6), build.cat([x], 0), build.numbers("mul", x, ())]
    assert same == [x] * 4
    one = build.total(x, (0,))
    assert build.total(one, (0,)) == one
    assert [node.name for node in build.nodes] == ["x_total"]
