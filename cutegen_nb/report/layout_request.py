"""A drawing from what a person writes: a layout, its swizzle, its element, and what to show of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.analysis.layout import parse_layout, parse_swizzle
from cutegen_nb.analysis.layout_banks import SharedTensor, element_bits, shared_tensor
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report.layout_drawing import Drawing, Room
from cutegen_nb.report.layout_pictures import banks, indices, partitions, picture

_MOST = 1 << 20
"""Elements of a layout that is drawn: a tile has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRequest:
    """What to draw."""

    text: str
    """A layout as CuTe writes it."""
    swizzle: str = ""
    """``3,4,3``: of indices, or of byte addresses where `on_bytes`; empty for none."""
    on_bytes: bool = False
    """Whether the swizzle is the pointer's, as the DSL's shared tensors have it."""
    element: str = ""
    """Type of an element, for banks."""
    banks: bool = False
    """Whether to colour by bank of shared memory."""
    tile: str = ""
    """The layout is (thread, value) over this tile: ``(16,8)``."""
    access_bits: int = 0
    """With `tile` and `over`: bits that a thread moves at once."""
    over: str = ""
    """The tensor in shared memory that threads access by the layout."""


def drawing(request: LayoutRequest, room: Room | None = None) -> Drawing:
    """The drawing of a request. Raises UsageError where it does not fit together, with the next step."""
    room = room or Room()
    if request.over:
        return _access(request, room)
    if request.tile:
        return _partition(request, room)
    layout = parse_layout(request.text)
    if layout.size > _MOST:
        raise UsageError(f"{request.text} has {layout.size:,} elements; a drawing takes up to {_MOST:,}.")
    if request.swizzle and not request.on_bytes:
        layout = replace(layout, swizzle=parse_swizzle(request.swizzle))
    if request.on_bytes or request.banks:
        if not request.element:
            raise UsageError("Banks depend on the element's size; name it, such as f16 or f32.")
        swizzle = parse_swizzle(request.swizzle) if request.swizzle and request.on_bytes else None
        tensor = SharedTensor(layout=layout, element_bits=element_bits(request.element), byte_swizzle=swizzle)
        on_bytes = f"{swizzle} on bytes, " if swizzle else ""
        return banks(tensor, f"{request.element}, {on_bytes}{layout}", room)
    return indices(layout, "", room)


def _partition(request: LayoutRequest, room: Room) -> Drawing:
    view = TvLayout(role="", text=str(parse_layout(request.text)), tiler=request.tile)
    record = LayoutRecord(kind=LayoutKind.COPY, views=(view,))
    return partitions(record, f"{view.text} over {request.tile}", room)


def _access(request: LayoutRequest, room: Room) -> Drawing:
    if not request.tile or not request.element:
        raise UsageError("An access needs the tile that threads share and the element; give both.")
    bits = request.access_bits or element_bits(request.element)
    view = TvLayout(role="source", text=str(parse_layout(request.text)), tiler=request.tile)
    record = LayoutRecord(
        kind=LayoutKind.ACCESS,
        text=request.over,
        element=request.element,
        pointer_swizzle=str(parse_swizzle(request.swizzle)) if request.swizzle else "",
        atom=f"{bits} bits a thread",
        access_bits=bits,
        views=(view,),
    )
    shared_tensor(record)
    return picture(record, room)
