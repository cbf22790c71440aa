"""Drawing of a layout that a user writes: layout, swizzle, element type and view."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cutegen_nb.analysis.layout.banks import SharedTensor, element_bits, shared_tensor
from cutegen_nb.analysis.layout.layout import parse_layout, parse_swizzle
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report.layout.drawing import Drawing, Room
from cutegen_nb.report.layout.pictures import banks, indices, partitions, picture

_MOST = 1 << 20
"""Most elements of a layout that is drawn; a kernel's tile has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutRequest:
    """Layout to draw, with the kind of view."""

    text: str
    """Layout as CuTe writes it."""
    swizzle: str = ""
    """Swizzle ``3,4,3``: of indices, or of byte addresses with `on_bytes`; empty for none."""
    on_bytes: bool = False
    """True if the swizzle belongs to the pointer, as for the DSL's shared tensors."""
    element: str = ""
    """Element type, needed for banks."""
    banks: bool = False
    """True to colour by shared-memory bank."""
    tile: str = ""
    """Tile ``(16,8)`` over which the layout maps (thread, value); empty for a plain layout."""
    access_bits: int = 0
    """Bits that a thread moves at once, with `tile` and `over`; 0 for one element."""
    over: str = ""
    """Layout of the shared tensor that threads access; empty for none."""


def drawing(request: LayoutRequest, room: Room | None = None) -> Drawing:
    """Draw a request. Raises UsageError, with advice, if its parts do not fit together."""
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
    layout, swizzle = parse_layout(request.over), parse_swizzle(request.swizzle) if request.swizzle else None
    if swizzle and not request.on_bytes:
        layout = replace(layout, swizzle=swizzle)
    view = TvLayout(role="source", text=str(parse_layout(request.text)), tiler=request.tile)
    record = LayoutRecord(
        kind=LayoutKind.ACCESS,
        text=str(layout),
        element=request.element,
        pointer_swizzle=str(swizzle) if swizzle and request.on_bytes else "",
        atom=f"{bits} bits a thread",
        access_bits=bits,
        views=(view,),
    )
    shared_tensor(record)
    return picture(record, room)
