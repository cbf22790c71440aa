"""Library policies: parts of a problem that may be left to PyTorch."""

from __future__ import annotations

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.library import (
    OPERATORS,
    LibraryFamily,
    family_of,
    library_option,
    library_words,
    parse_library,
)

CONV, MATMUL, ATTENTION, NORM, POOL = LibraryFamily


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", ()), ("none", ()), ("conv", (CONV,)), ("matmul,conv", (CONV, MATMUL)),
        (" pool , norm,pool", (NORM, POOL)), ("attention", (ATTENTION,)),
    ],
)  # fmt: skip
def test_a_policy_is_read_in_any_order_and_written_in_one(text, policy):
    assert parse_library(text) == policy
    assert parse_library(library_option(policy)) == policy


def test_a_mistyped_part_is_answered_with_the_known_and_the_nearest():
    with pytest.raises(
        UsageError, match=r"'konv' .*conv, matmul, attention, norm or pool; did you mean conv\?"
    ):
        parse_library("matmul,konv")
    with pytest.raises(UsageError, match="'none' is no part"):
        parse_library("none,conv")


def test_a_policy_is_told_beside_a_verdict():
    assert library_words(()) == ""
    assert library_words((CONV,)) == "with PyTorch's conv"
    assert library_words((CONV, MATMUL, POOL)) == "with PyTorch's conv, matmul and pool"


@pytest.mark.parametrize(
    ("operator", "family"),
    [
        ("aten.convolution.default", CONV), ("conv2d", CONV), ("aten.addmm.default", MATMUL),
        ("linear", MATMUL), ("aten.native_layer_norm.default", NORM), ("max_pool2d", POOL),
        ("scaled_dot_product_attention", ATTENTION), ("aten.relu.default", None), ("_softmax", None),
        # The activation that is fused in is the kernel's work.
        ("_addmm_activation", None), ("cudnn_convolution_relu", None), ("linear_relu", None),
    ],
)  # fmt: skip
def test_an_operator_belongs_to_its_family_and_others_to_none(operator, family):
    assert family_of(operator) is family


def test_no_operator_is_in_two_families():
    names = [name for members in OPERATORS.values() for name in members]
    assert len(names) == len(set(names))
    assert set(OPERATORS) == set(LibraryFamily)
