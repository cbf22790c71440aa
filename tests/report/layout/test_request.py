"""Requests for a drawing of a layout."""

from __future__ import annotations

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.report.layout.request import LayoutRequest, drawing


@pytest.mark.parametrize(
    ("request_", "word"),
    [
        (LayoutRequest(text="(8,8):(8,1)", banks=True), "element"),
        (LayoutRequest(text="(4096,4096):(4096,1)"), "up to"),
        (LayoutRequest(text="(32,8):(1,32)", over="(32,32):(32,1)", element="f32"), "tile"),
        (LayoutRequest(text="(32,8):(1,32)", tile="(4,4)"), "goes to index"),
        (LayoutRequest(text="(8,8,8)", tile="(4,4)"), "has two"),
    ],
)
def test_what_does_not_fit_together_is_refused_with_the_next_step(request_: LayoutRequest, word: str) -> None:
    with pytest.raises(UsageError, match=word):
        drawing(request_)


@pytest.mark.parametrize(("swizzle", "on_bytes"), [("3,2,3", False), ("3,4,3", True)])
def test_an_access_is_drawn_with_a_swizzle_of_indices_or_of_bytes(swizzle: str, *, on_bytes: bool) -> None:
    """The same permutation of 16-byte vectors: of f32 indices from bit 2, of byte addresses from bit 4."""
    drawn = drawing(
        LayoutRequest(
            text="(32,4):(1,32)", tile="(32,4)", over="(32,32):(32,1)", element="f32", access_bits=128,
            swizzle=swizzle, on_bytes=on_bytes,
        )
    )  # fmt: skip
    assert "The one access of the tile: 4 passes, 4 at least: free of bank conflicts." in drawn.description
