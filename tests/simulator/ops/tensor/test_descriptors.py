"""Descriptors of tcgen05: matrices in shared memory, and the product itself."""

import numpy as np
import pytest

from cutegen_nb.simulator.ops.tensor.descriptors import (
    UnknownTensorDescriptor,
    decode_matrices,
    decode_product,
)


def matrix(start=1024, leading=128, stride=256, *, code=0, more=0):
    fields = start >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | more << 49 | code << 61
    return np.array([fields], np.uint64)


def product(*, m=128, d=1, a=0, extra=0):
    return d << 4 | a << 7 | 64 >> 3 << 17 | m >> 4 << 24 | extra


def test_core_matrices_lie_a_stride_apart():
    places = decode_matrices(matrix()).rows(16, 2)
    assert places[0, :, 0].tolist() == [1024 + row % 8 * 16 + row // 8 * 256 for row in range(16)]
    assert (places[..., 1] - places[..., 0] == 128).all()


@pytest.mark.parametrize(("code", "span"), [(2, 128), (4, 64), (6, 32)])
def test_a_swizzle_permutes_units_within_a_row(code, span):
    places = decode_matrices(matrix(start=0, code=code, stride=8 * span)).rows(8, span // 16)[0]
    assert (places // span == np.arange(8)[:, None]).all()
    assert np.unique(places).size == places.size


@pytest.mark.parametrize(
    ("given", "words"),
    [(matrix(more=1), "base offset"), (matrix(more=8), "absolute address"), (matrix(code=7), "swizzle 7")],
)
def test_a_matrix_of_another_form_is_refused_by_name(given, words):
    with pytest.raises(UnknownTensorDescriptor, match=words):
        decode_matrices(given)


def test_a_product_has_its_shape_types_and_sign():
    found = decode_product(product(extra=1 << 13), "f16", 1)
    assert (found.m, found.n, found.k, found.a, found.d, found.sign) == (128, 64, 16, "f16", "f32", -1)
    assert decode_product(product(extra=0b11 << 13), "f16", 1).sign == 1


@pytest.mark.parametrize(
    ("bits", "kind", "words"),
    [
        (product(extra=0b100), "f16", "sparse"),
        (product(a=5), "f16", "a type that .kind::f16 has not"),
        (product(m=32), "f16", "shape of 32 rows"),
        (product(d=2), "f16", "a type"),
    ],
)
def test_a_product_that_is_not_known_is_refused_by_name(bits, kind, words):
    with pytest.raises(UnknownTensorDescriptor, match=words):
        decode_product(bits, kind, 1)
