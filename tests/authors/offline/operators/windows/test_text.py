"""The text of a window's kernel has the window's numbers as constants."""

import ast

from cutegen_nb.authors.offline.operators.cut import cut
from cutegen_nb.authors.offline.operators.windows.text import window_text
from cutegen_nb.authors.offline.operators.windows.writer import WindowsWriter


def test_the_simplest_kernel_is_python_with_its_constants(traced):
    facts = traced("functional.max_pool2d(x, 3, 2, 1)", "torch.rand(2, 4, 17, 19)")
    (call,) = cut(facts, (WindowsWriter(),), ()).calls().values()
    text = window_text(call, call.attributes, None)
    ast.parse(text.source)
    upper = call.name.upper()
    assert text.constants[f"{upper}_WIDTH"] == "(3, 2, 1, 1)"
    assert text.constants[f"{upper}_THREADS"] == "256"
    assert not any(number in text.source for number in ("17", "19"))
