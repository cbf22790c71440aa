"""Interpolations found in a traced graph."""

import pytest

from cutegen_nb.authors.offline.operators.resampling.matching import interpolations_in


def found(traced, arguments, shape):
    graph = traced(f"functional.interpolate(x, {arguments})", f"torch.randn({shape})").full.graph
    (match,) = interpolations_in(graph)
    return match.attributes


@pytest.mark.slow
def test_factors_sizes_and_corners_are_read(traced):
    linear = found(traced, "scale_factor=2, mode='linear'", "2, 3, 16")
    assert (linear.scales, linear.input_size, linear.output_size) == ((2.0,), (16,), (32,))
    volume = found(traced, "size=(4, 6, 8), mode='trilinear', align_corners=True", "2, 3, 8, 8, 8")
    assert (volume.scales, volume.align_corners, volume.output_size) == (None, True, (4, 6, 8))


@pytest.mark.slow
def test_four_elements_and_antialiasing_are_told_from_the_rest(traced):
    cubic = found(traced, "scale_factor=(2, 3), mode='bicubic'", "2, 3, 16, 16")
    assert (cubic.cubic, cubic.antialias, cubic.scales) == (True, False, (2.0, 3.0))
    assert found(traced, "scale_factor=0.5, mode='bilinear', antialias=True", "2, 3, 16, 16").antialias
