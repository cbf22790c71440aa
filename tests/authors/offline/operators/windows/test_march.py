"""Slices of a march, and windows that fit its registers."""

from cutegen_nb.authors.offline.operators.windows.attributes import Window, WindowAxis
from cutegen_nb.authors.offline.operators.windows.march import fits_march, march_plan


def test_each_slice_goes_to_the_windows_that_hold_it():
    window = Window(kind="max", spatial=2, rank=2, axes=(WindowAxis(), WindowAxis(3, 2, 1, 3), WindowAxis()))
    plan = march_plan(window, staged=True, pipelined=True)
    # Taps 0, 3 and 6 of a window; the next window begins 2 slices later.
    assert plan.taps == (((0, 0), (2, 3)), ((1, 1),))
    assert plan.open == 4


def test_windows_that_fit_no_registers_keep_the_simplest_kernel():
    large = Window(kind="conv", spatial=2, rank=2, axes=(WindowAxis(), WindowAxis(9), WindowAxis(9)))
    assert not fits_march(large, "float32")
    assert fits_march(
        Window(kind="avg", spatial=2, rank=2, axes=(WindowAxis(), WindowAxis(9), WindowAxis(9))), "float32"
    )
    assert not fits_march(Window(kind="avg", spatial=2, adaptive=(3, 3)), "float32")
