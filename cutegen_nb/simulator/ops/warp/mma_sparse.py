"""``mma.sp``: products of a matrix A of which every other element is left out (PTX ISA, "mma.sp").

Of 4 neighbours along K 2 are kept (f16, bf16, 8 bits), of 2 one (tf32), of 4 pairs 2 (4 bits). A has the
fragments of a dense matrix of half the columns. The metadata have four bits for each such chunk: the places
of the two kept elements, the first one in the lower bits; for tf32 0b0100 is the first, 0b1110 the second.
Metadata that name one place twice are undefined; the second element counts here.

Each thread of a group that the selector names gives 32 bits. The rows and columns that these are about follow
CUTLASS, ``mma_traits_sm90_gmma_sparse.hpp`` and ``mma_traits_sm120_sparse.hpp`` (``ELayout``).
"""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.values import U32, Array
from cutegen_nb.simulator.ops.warp.fragments import GROUPS, PLACES, row_words, words_of
from cutegen_nb.simulator.ops.warp.mma_batching import BatchedProduct, Group
from cutegen_nb.simulator.state.batch import Batch

SHAPES: dict[str, dict[tuple[int, int, int], tuple[str, ...]]] = {
    "f16": {(16, 8, 16): ("f16", "f32"), (16, 8, 32): ("f16", "f32")},
    "bf16": {(16, 8, 16): ("f32",), (16, 8, 32): ("f32",)},
    "tf32": {(16, 8, 8): ("f32",), (16, 8, 16): ("f32",)},
    "fp8": {(16, 8, 64): ("f16", "f32")},
    "8": dict.fromkeys(((16, 8, 32), (16, 8, 64)), ("s32",)),
    "4": dict.fromkeys(((16, 8, 64), (16, 8, 128)), ("s32",)),
}
"""Types of C and D by family of A and B and by shape (m, n, k)."""
_CHUNK = {"tf32": 2, "s4": 8, "u4": 8}
"""Elements of a chunk; 4 for other types."""
_HALF_WORDS = frozenset({"f16", "bf16", "tf32"})
"""Types whose rows g and g + 8 have the halves of a word; those of other types have words of their own."""
_CHUNK_BITS, _WORD_CHUNKS = 4, 8
"""Bits of metadata of a chunk, and chunks of a word."""


class SparseProduct(Group):
    """Operation of one ``mma.sp``."""

    def __init__(self, product: BatchedProduct, metadata: int, selector: int) -> None:
        super().__init__((product,))
        self._metadata = metadata
        """Slot of the metadata's register."""
        self._selector = selector

    def _rows(self, lanes: Batch, warps: Array | None) -> Array:
        """Elements of A with zeros for those left out, (warps, 16 rows, K)."""
        form = self._first.form
        words = row_words(lanes, self._lefts, form.m, form.a, warps)
        kept = form.a.decode(words).reshape(len(words), form.m, form.k // 2)
        given = words_of(lanes, self._metadata, U32, warps).reshape(-1, GROUPS, PLACES)
        threads = PLACES // selectors(form.a.name, form.k)
        chosen = given[:, :, self._selector * threads : (self._selector + 1) * threads]
        return expanded(kept, chunks_of(chosen, form.a.name), form.a.name)

    def _elements_of_rows(self, rows: Array) -> Array:
        return rows


def selectors(kind: str, k: int) -> int:
    """Number of selectors of a form: of sets of threads of a group, one of which gives the metadata."""
    # A group has two rows.
    threads = 2 * (k // _CHUNK.get(kind, 4)) // _WORD_CHUNKS
    return PLACES // threads


def chunks_of(words: Array, kind: str) -> Array:
    """Metadata of each row's chunks, uint32 (warps, 16 rows, chunks), of words (warps, 8 groups, threads)."""
    shifts = np.arange(0, _CHUNK_BITS * _WORD_CHUNKS, _CHUNK_BITS, dtype=np.uint32)
    each = words[..., None] >> shifts & U32.type(0xF)
    warps, _, threads = words.shape
    if kind in _HALF_WORDS:
        # (warps, group, thread, row half, chunk): threads go on along K.
        by_row = each.reshape(warps, GROUPS, threads, 2, -1).transpose(0, 3, 1, 2, 4)
    else:
        # (warps, group, pair of threads, row half, chunk): pairs go on along K.
        by_row = each.reshape(warps, GROUPS, threads // 2, 2, -1).transpose(0, 3, 1, 2, 4)
    return by_row.reshape(warps, 2 * GROUPS, -1)


def expanded(kept: Array, chunks: Array, kind: str) -> Array:
    """Put kept elements, (warps, rows, K / 2), to their places, (warps, rows, K), with zeros between."""
    lead = chunks.shape
    if kind == "tf32":
        places = (chunks >> U32.type(1) & U32.type(1))[..., None]
    else:
        places = np.stack((chunks & U32.type(3), chunks >> U32.type(2)), axis=-1)
    # Elements that are kept or left out together: pairs of 4 bits, else one.
    together = 2 if _CHUNK.get(kind, 4) == 8 else 1  # noqa: PLR2004 - elements of four pairs
    result = np.zeros((*lead, _CHUNK.get(kind, 4) // together, together), kept.dtype)
    np.put_along_axis(result, places[..., None].astype(np.int64), kept.reshape(*lead, -1, together), axis=-2)
    return result.reshape(*lead[:-1], -1)
