"""Text of an interpolation's kernel."""

import pytest

from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm


def text(traced, arguments, shape):
    facts = traced(f"functional.interpolate(x, {arguments})", f"torch.randn({shape})")
    problem = Problem(name="given", source="", form=ProblemForm.FUNCTION, function="reference")
    return OperatorsWriter().write(problem, facts, ("warps-along-rows",)).source


@pytest.mark.slow
def test_what_a_row_lies_between_is_found_before_its_columns(traced):
    source = text(traced, "scale_factor=2, mode='trilinear'", "2, 3, 8, 8, 8")
    rows, columns = source.index("rows = interpolated_taps"), source.index("for base in")
    assert source.index("slices = interpolated_taps") < rows < columns


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "taps"), [("linear", 2), ("bicubic", 4)])
def test_the_mode_decides_the_number_of_taps(traced, mode, taps):
    source = text(traced, f"scale_factor=2, mode='{mode}'", "2, 3, 8" + ", 8" * (mode == "bicubic"))
    assert f"for k_x in cutlass.range_constexpr({taps})" in source


@pytest.mark.slow
def test_sizes_follow_from_the_factors(traced):
    source = text(traced, "scale_factor=1.5, mode='linear'", "2, 3, 8")
    assert "OW = int(W * 1.5)" in source
