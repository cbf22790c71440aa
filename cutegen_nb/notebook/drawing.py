"""`cutegen_nb.draw_layout`: drawing of a CuTe layout in a notebook."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cutegen_nb.analysis.layout.ir import mma_tile
from cutegen_nb.analysis.layout.layout import IntTuple, parse_layout, written
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report.layout.drawing import Drawing
from cutegen_nb.report.layout.pictures import picture
from cutegen_nb.report.layout.png import png
from cutegen_nb.report.layout.request import LayoutRequest, drawing
from cutegen_nb.report.layout.svg import svg


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutPicture:
    """Drawing that a notebook shows; `save` writes it."""

    drawing: Drawing
    """Cells, colours, title and description of the picture."""
    dark: bool = False
    """True if the PNG is dark; the SVG follows the colour scheme of its viewer."""

    def _repr_svg_(self) -> str:
        return svg(self.drawing, own_colors=True)

    def _repr_png_(self) -> bytes:
        return png(self.drawing, dark=self.dark)

    def __repr__(self) -> str:
        return "\n".join(part for part in (self.drawing.title, self.drawing.description) if part)

    def save(self, path: str) -> None:
        """Write the drawing to a ``.svg`` or ``.png`` file. Raises UsageError for another suffix."""
        if path.endswith(".svg"):
            with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.write(self._repr_svg_())
        elif path.endswith(".png"):
            with open(path, "wb") as file:  # noqa: PTH123
                file.write(self._repr_png_())
        else:
            raise UsageError(f"{path!r} ends in neither .svg nor .png; choose one of them.")


def draw_layout(  # noqa: PLR0913 - the options of a picture, each with a default
    layout: Any,  # noqa: ANN401 - a DSL layout, whose type is not imported here
    stride: IntTuple | None = None,
    *,
    swizzle: str | tuple[int, int, int] = "",
    swizzle_bytes: bool = False,
    element: str = "",
    banks: bool = False,
    tile: str | tuple[int, ...] = "",
    over: Any = "",  # noqa: ANN401
    access_bits: int = 0,
    dark: bool = False,
) -> LayoutPicture:
    """Draw a CuTe layout, or a tiled copy or MMA of the DSL.

    Args:
        layout: text such as ``"(8,(2,4)):(8,(1,2))"``, a shape as a tuple, or a layout, tiled copy or tiled
            MMA of the DSL where it is traced; the latter two take no other arguments but ``dark``.
        stride: with a shape, its strides; left out, the first mode is the fastest.
        swizzle: swizzle (B, M, S) of the index: ``(3, 3, 3)`` or ``"3,3,3"``.
        swizzle_bytes: the swizzle is of byte addresses, as in pointers of the DSL's shared tensors.
        element: type of an element, such as ``"f16"``; banks need it.
        banks: colour by bank of shared memory, and give a warp's bank conflicts along each mode.
        tile: the layout is (thread, value) over a tile of this shape.
        over: the layout in shared memory that these threads access; conflicts are marked.
        access_bits: bits that a thread moves in one access; 0 for one element.
        dark: a dark PNG.

    Raises UsageError when `layout` is no layout, or the arguments do not fit together.
    """
    record = _tiled(layout)
    if record is not None:
        return LayoutPicture(drawing=picture(record), dark=dark)
    request = LayoutRequest(
        text=_text(layout, stride),
        swizzle=swizzle if isinstance(swizzle, str) else ",".join(map(str, swizzle)),
        on_bytes=swizzle_bytes,
        element=element,
        banks=banks,
        tile=tile if isinstance(tile, str) else written(tile),
        access_bits=access_bits,
        over=_text(over, None) if over else "",
    )
    return LayoutPicture(drawing=drawing(request), dark=dark)


def _tiled(given: Any) -> LayoutRecord | None:  # noqa: ANN401
    """Return the record of a tiled MMA or copy of the DSL; None for anything else."""
    if hasattr(given, "tv_layout_C_tiled"):
        shape, threads = str(given.shape_mnk).replace(" ", ""), str(given.thr_layout_vmnk)
        tile = mma_tile(_tiler(given.permutation_mnk), shape, threads)
        if not tile:
            message = f"the permutation {given.permutation_mnk} needs a mode each for M, N and K"
            raise UsageError(message)
        # The tile has modes M, N, K: A is M x K, B is N x K, C is M x N.
        views = tuple(
            TvLayout(role=role, text=str(text), tiler=f"[{tile[one]};{tile[other]}]")
            for role, text, one, other in (
                ("A", given.tv_layout_A_tiled, 0, 2),
                ("B", given.tv_layout_B_tiled, 1, 2),
                ("C", given.tv_layout_C_tiled, 0, 1),
            )
        )
        return LayoutRecord(kind=LayoutKind.MMA, atom=f"atom {shape}", views=views)
    if hasattr(given, "layout_src_tv_tiled"):
        tiler = _tiler(given.tiler_mn)
        views = (
            TvLayout(role="source", text=str(given.layout_src_tv_tiled), tiler=tiler),
            TvLayout(role="destination", text=str(given.layout_dst_tv_tiled), tiler=tiler),
        )
        return LayoutRecord(kind=LayoutKind.COPY, views=views)
    return None


def _tiler(given: object) -> str:
    """Convert a tiler from Python's form ``(32:1, None)`` to CuTe's ``[32:1;_]``."""
    modes = str(given).removeprefix("(").removesuffix(")").split(", ")
    return f"[{';'.join('_' if mode == 'None' else mode for mode in modes)}]"


def _text(layout: Any, stride: IntTuple | None) -> str:  # noqa: ANN401
    if isinstance(layout, int | tuple):
        return written(layout) + (f":{written(stride)}" if stride is not None else "")
    text = str(layout)
    if stride is not None:
        raise UsageError(f"{text!r} has its strides already; give a shape as a tuple, or no strides.")
    return str(parse_layout(text))
