"""Clusters: the order of their CTAs in a batch, and addresses of another CTA's shared memory.

An address that ``mapa`` returns has the CTA's rank plus 1 from bit 24 on; one without names the thread's own
CTA. PTX leaves the encoding opaque.
"""

from __future__ import annotations

import math

import numpy as np

from cutegen_nb.simulator.numbers.values import Array

_RANK_AT = 24
"""Lowest bit of the rank; shared memory is smaller than 2**24 bytes."""
OFFSET = (1 << _RANK_AT) - 1
"""Largest byte offset; greater addresses name a CTA by its rank."""
_RANKS = 0xFF


def by_cluster(grid: tuple[int, int, int], cluster: tuple[int, int, int]) -> Array:
    """Linear numbers of the CTAs of a grid, by cluster and rank: int64 (clusters, CTAs of a cluster)."""
    x, y, z = grid
    numbers = np.arange(math.prod(grid)).reshape(z, y, x)
    cx, cy, cz = cluster
    parts = numbers.reshape(z // cz, cz, y // cy, cy, x // cx, cx)
    return parts.transpose(0, 2, 4, 1, 3, 5).reshape(-1, cx * cy * cz)


def mapped(addresses: Array, ranks: Array) -> Array:
    """Addresses of the same places in the CTAs of some ranks, in the dtype of ``addresses``."""
    kind = addresses.dtype.type
    above = ~kind(_RANKS << _RANK_AT)
    return (addresses & above) | (ranks.astype(addresses.dtype) + kind(1)) << kind(_RANK_AT)


def offsets_of(addresses: Array) -> Array:
    """Byte offsets in a CTA's shared memory, int64."""
    return np.where(addresses < 0, addresses, addresses & OFFSET)


def rows_of(addresses: Array, rows: Array, size: int) -> Array:
    """Place in the batch of the CTA that each address names.

    Args:
        addresses: addresses, int64.
        rows: place in the batch of the CTA of the thread that gives each address.
        size: CTAs of a cluster.
    """
    ranks = addresses >> _RANK_AT & _RANKS
    return np.where((ranks == 0) | (addresses < 0), rows, rows // size * size + ranks - 1)


def ranks_of(addresses: Array, own: Array) -> Array:
    """Rank of the CTA that each address names; ``own`` where it is the thread's own."""
    ranks = addresses >> _RANK_AT & _RANKS
    return np.where(ranks == 0, own, ranks - 1)


def multicast(masks: Array, rows: Array, size: int) -> tuple[Array, Array]:
    """CTAs that a multicast goes to.

    Args:
        masks: ranks as bits, one mask for each thread.
        rows: place in the batch of the CTA of each thread.
        size: CTAs of a cluster.

    Returns:
        For each destination, the index of its thread and the place of its CTA in the batch.
    """
    sources, ranks = np.nonzero(masks[:, None] >> np.arange(size) & 1)
    return sources, rows[sources] // size * size + ranks
