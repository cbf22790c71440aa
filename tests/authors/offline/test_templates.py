"""Text of generated code: templates, long lists, indentation."""

import jinja2
import pytest

from cutegen_nb.authors.offline.templates import LONGEST_LINE, indented, render, signature, wrapped


def test_a_missing_value_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        render("module")


def test_a_list_is_broken_only_where_the_line_would_be_too_long():
    assert wrapped(["a", "b"], 10) == "a, b"
    broken = wrapped([f"argument_{number}: cute.Tensor" for number in range(8)], 20)
    assert broken.startswith("\n")
    assert max(map(len, broken.splitlines())) <= LONGEST_LINE
    compile(f"def f({broken}): pass", "", "exec")


def test_a_signature_names_tensors_numbers_and_the_stream():
    made = signature("relu", ["mX", "mY"], ["VEC"])
    assert made["params"] == "mX: cute.Tensor, mY: cute.Tensor, VEC: cutlass.Constexpr"
    assert made["host_params"].endswith("stream: cuda.CUstream")
    assert made["arguments"] == "mX, mY, VEC"


def test_empty_lines_stay_empty():
    assert indented(["a", "", "b"], 2) == ["        a", "", "        b"]
