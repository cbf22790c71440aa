"""Each operator is taken by one writer."""

import pytest

from cutegen_nb.authors.offline.operators.registry import OPERATOR_WRITERS


@pytest.mark.parametrize(
    ("value", "inputs", "taken_by"),
    [
        (
            "functional.conv2d(x, y)",
            ["torch.rand(2, 16, 9, 9)", "torch.rand(8, 16, 3, 3)"],
            "ConvolutionWriter",
        ),
        (
            "functional.conv2d(x, y, groups=4)",
            ["torch.rand(2, 4, 9, 9)", "torch.rand(4, 1, 3, 3)"],
            "WindowsWriter",
        ),
        ("functional.max_pool2d(x, 2)", ["torch.rand(2, 4, 8, 8)"], "WindowsWriter"),
        ("torch.cumsum(x, 1)", ["torch.rand(8, 33)"], "ScanWriter"),
        ("torch.topk(x, 3)", ["torch.rand(8, 33)"], "SelectionWriter"),
        ("torch.relu(x)", ["torch.rand(8, 33)"], ""),
    ],
)
def test_the_first_writer_that_matches_keeps_the_node(traced, value, inputs, taken_by):
    graph = traced(value, *inputs).full.graph
    found = [type(writer).__name__ for writer in OPERATOR_WRITERS if writer.matches(graph)]
    assert "".join(found[:1]) == taken_by
