"""Views that functions take as they lie in memory."""

from cutegen_nb.authors.offline.graph.in_place import taken_in_place
from cutegen_nb.authors.offline.graph.reading import FunctionCall, read

HEADS = "x.split(32, 2)[1].view(2, 8, 4, 8).transpose(1, 2)"
"""Heads of a slice: three views."""


def found(traced, value, *, in_place=True):
    """Kinds of the views that the function in place of ``relu`` takes as they lie in memory."""
    facts = traced(value, "torch.randn(2, 8, 96)")
    (relu,) = [node for node in facts.full.graph.nodes if ".relu." in node.op]
    call = FunctionCall(name="f", operands=(relu.args[0],), in_place=in_place)
    program = read(facts, functions={relu.name: call})
    return sorted(program.ops[name].op for name in taken_in_place(program))


def test_views_up_to_the_function_stay(traced):
    assert found(traced, f"torch.relu({HEADS})") == ["host_view:slice", "permute", "view"]
    assert found(traced, f"torch.relu({HEADS})", in_place=False) == []


def test_views_with_another_user_or_that_are_returned_are_made_dense(traced):
    assert found(traced, f"(lambda y: torch.relu(y) + y)({HEADS})") == []
    assert found(traced, f"(lambda y: (torch.relu(y), y))({HEADS})") == []


def test_a_view_that_joins_strided_dimensions_is_of_a_dense_tensor(traced):
    joined = "x.view(2, 8, 4, 24).transpose(1, 2).reshape(8, 8, 24).transpose(0, 1)"
    assert found(traced, f"torch.relu({joined})") == ["permute", "view"]
