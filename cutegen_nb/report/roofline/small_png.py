"""Reduction of a PNG to few colours."""

from __future__ import annotations

import io

from PIL import Image  # matplotlib needs it itself

_COLOURS = 64
"""Size of the palette: about a dozen colours, and the shades that smooth the edges between them."""


def smaller(drawn: io.BytesIO) -> bytes:
    """Return the PNG with a palette, in a quarter of the bytes.

    A notebook keeps one for light and one for dark.
    """
    with Image.open(drawn) as full:
        few = full.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    target = io.BytesIO()
    few.save(target, format="png", optimize=True)
    return target.getvalue()
