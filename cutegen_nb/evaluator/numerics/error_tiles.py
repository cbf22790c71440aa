"""Wrong elements by tile of the output: whole tiles point at a CTA, parts of every tile at a thread."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from cutegen_nb.core.wrong_values import TileShare

_EXTENTS = (256, 128, 64, 32, 16, 8)
"""Edges of the square tiles that are tried on a matrix, in elements, the largest first."""
_VECTOR_EXTENTS = (4096, 2048, 1024, 512, 256, 128, 64, 32)
"""Lengths of the tiles that are tried on a vector, in elements, the largest first."""
_SHOWN_EXTENT = 64
"""Largest edge of a matrix's tiles, in elements, where no tiles are wrong throughout; 256 for a vector."""
_SHOWN = 8
"""Tiles listed at most."""
_MATRIX = 2
"""Fewest dimensions of an output that is seen as a matrix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """Shares of wrong elements by tile."""

    shape: tuple[int, ...]
    """Extent of a tile: rows then columns, or one extent for a vector."""
    shares: tuple[TileShare, ...]
    """Tiles with wrong elements, worst first, at most eight."""
    bad: int
    """Tiles with wrong elements."""
    count: int
    """Tiles in all."""
    whole: bool
    """True if each tile is wrong throughout or right throughout."""


def by_tiles(bad: torch.Tensor) -> Tiles | None:
    """Share of wrong elements in each tile of the mask `bad`.

    The mask is a vector, or a matrix with all dimensions but the last as rows. Tiles have the largest usual
    extent at which every tile is wrong throughout or right throughout. Where there is none, they have at most
    64 × 64 elements (256 for a vector).

    None if everything or nothing is wrong, or the mask is no longer than the smallest tile.
    """
    mask = _as_matrix(bad)
    count = int(mask.sum())
    if count in {0, mask.numel()}:
        return None
    vector = mask.shape[0] == 1
    extents = [e for e in (_VECTOR_EXTENTS if vector else _EXTENTS) if e < max(mask.shape)]
    for extent in extents:
        shares, sizes = _shares(mask, (1 if vector else extent, extent))
        # Smaller tiles divide larger ones and fit as well: the first that fits is most likely the CTA's.
        full = (shares == 0) | (shares == sizes)
        if bool(full.all()) and int((shares > 0).sum()) < shares.numel():
            return _tiles(shares, sizes, extent, vector=vector, whole=True)
    if not extents:
        return None
    extent = next((e for e in extents if e <= (256 if vector else _SHOWN_EXTENT)), extents[-1])
    shares, sizes = _shares(mask, (1 if vector else extent, extent))
    return _tiles(shares, sizes, extent, vector=vector, whole=False)


def _as_matrix(bad: torch.Tensor) -> torch.Tensor:
    if bad.dim() < _MATRIX:
        return bad.reshape(1, -1)
    return bad.reshape(-1, bad.shape[-1])


def _shares(mask: torch.Tensor, tile: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Count wrong elements and elements of each tile; tiles at the edges are cut off, not filled up."""
    rows, columns = (-(-extent // step) for extent, step in zip(mask.shape, tile, strict=True))
    # Plane 0 counts wrong elements, plane 1 elements: the padding is 0 in both.
    padded = torch.zeros(2, rows * tile[0], columns * tile[1], dtype=torch.int32, device=mask.device)
    padded[0, : mask.shape[0], : mask.shape[1]] = mask
    padded[1, : mask.shape[0], : mask.shape[1]] = 1
    sums = padded.view(2, rows, tile[0], columns, tile[1]).sum(dim=(2, 4))
    return sums[0], sums[1]


def _tiles(shares: torch.Tensor, sizes: torch.Tensor, extent: int, *, vector: bool, whole: bool) -> Tiles:
    fractions = (shares.double() / sizes).reshape(-1)
    columns = shares.shape[1]
    order = torch.argsort(fractions, descending=True, stable=True)[:_SHOWN].tolist()
    found = tuple(
        TileShare(
            tile=(index,) if vector else (index // columns, index % columns),
            bad_fraction=float(fractions[index]),
        )
        for index in order
        if float(fractions[index]) > 0
    )
    return Tiles(
        shape=(extent,) if vector else (extent, extent),
        shares=found,
        bad=int((shares > 0).sum()),
        count=shares.numel(),
        whole=whole,
    )
