"""Packed rows of a listing."""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace

import pytest

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.compiled.listing import UNCOUNTED, CodeListing, CodeRow, packed_rows

ROWS = (CodeRow("{"), CodeRow("    ld.global.b32 %r1, [%rd1];\t// “a”", 7, 12), CodeRow("L:", 0, UNCOUNTED))
LISTING = CodeListing(kernel="k", language="PTX", packed=packed_rows(ROWS))


def test_rows_come_back_as_they_were():
    assert LISTING.rows() == ROWS
    assert decode(CodeListing, encode(LISTING)) == LISTING
    assert replace(LISTING, packed=packed_rows(())).rows() == ()


def test_a_row_of_any_length_and_any_character_is_kept_in_one_line():
    long = replace(LISTING, packed=packed_rows([CodeRow("x" * 5000), CodeRow("\ud800")]))
    assert [len(row.text) for row in long.rows()] == [1000, 6]


@pytest.mark.parametrize(
    "data",
    [
        b"no",
        zlib.compress(b"0\t0\tx")[:-3],
        zlib.compress(bytes(1 << 25)),
        zlib.compress(b"no tabs"),
        zlib.compress(b"\xff\xff"),
    ],
    ids=["no zlib", "cut", "too large", "no rows", "no text"],
)
def test_a_damaged_listing_is_refused_and_nothing_large_is_unpacked(data):
    with pytest.raises(ValueError, match=r"damaged|cut or unpacks|not enough values|decode"):
        replace(LISTING, packed=base64.b85encode(data).decode()).rows()
