"""Strata of a grid: its inside and each of its edges, and random draws of CTAs from each.

The last CTAs in x, y and z often have less to do, because extents are not multiples of a tile. Their number
is known exactly. A CTA of a cluster needs the others, so clusters are drawn instead of CTAs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.numbers.values import Array
from cutegen_nb.simulator.state.launch import Launch

_Extents = tuple[int, int, int]
_PERIOD = 8
"""Clusters after which work may repeat: the phases of a convolution with stride 2 in three dimensions."""
_STEP = 5
"""Step from remainder to remainder: the first four, 0, 5, 2 and 7, differ by 2 and by 4 too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """Box of clusters, in the grid of clusters."""

    first: _Extents
    """Place of its first cluster."""
    extents: _Extents
    """Clusters in x, y, z."""

    @property
    def size(self) -> int:
        """Number of clusters."""
        return self.extents[0] * self.extents[1] * self.extents[2]

    def place(self, number: int) -> _Extents:
        """Place in the grid of clusters of one of its clusters, numbered with x fastest."""
        x, y, _ = self.extents
        return (
            self.first[0] + number % x,
            self.first[1] + number // x % y,
            self.first[2] + number // (x * y),
        )

    def places(self) -> list[_Extents]:
        """Places of all its clusters."""
        return [self.place(number) for number in range(self.size)]

    def draw(self, chance: np.random.Generator, many: int) -> list[_Extents]:
        """Draw up to ``many`` different clusters, one from each of as many equal parts.

        Equal parts keep the error small where work grows with the place. Numbers of different remainders by
        `_PERIOD` find what only every second, fourth or eighth cluster does, as in a strided convolution.
        """
        ends = np.linspace(0, self.size, min(many, self.size) + 1).round().astype(np.int64)
        parts = enumerate(itertools.pairwise(ends.tolist()))
        return [self.place(_drawn(chance, index, low, high)) for index, (low, high) in parts]


def _drawn(chance: np.random.Generator, index: int, low: int, high: int) -> int:
    """Draw a number from a part. In a large part its remainder modulo `_PERIOD` follows from the index."""
    number = int(chance.integers(low, high))
    if high - low < 2 * _PERIOD:
        return number
    number += (_STEP * index - number) % _PERIOD
    return number if number < high else number - _PERIOD


def clusters_of(launch: Launch) -> _Extents:
    """Grid of clusters; the grid itself where clusters have one CTA."""
    x, y, z = (size // step for size, step in zip(launch.grid, launch.cluster, strict=True))
    return x, y, z


def strata(launch: Launch) -> list[Stratum]:
    """Divide a grid into its inside, and what is last in x, y, z and combinations; empty ones left out."""
    pieces = [((0, size - 1), (size - 1, 1)) if size > 1 else ((0, 1),) for size in clusters_of(launch)]
    return [
        Stratum(first=(x[0], y[0], z[0]), extents=(x[1], y[1], z[1]))
        for z, y, x in itertools.product(*reversed(pieces))
    ]


def ctas_of(launch: Launch, places: list[_Extents]) -> Array:
    """Linear numbers of the CTAs of some clusters; those of one are neighbours, in order of rank."""
    numbers = [
        (place[0] * launch.cluster[0] + x)
        + launch.grid[0]
        * ((place[1] * launch.cluster[1] + y) + launch.grid[1] * (place[2] * launch.cluster[2] + z))
        for place in sorted(places, key=lambda one: one[::-1])
        for z, y, x in itertools.product(*map(range, reversed(launch.cluster)))
    ]
    return np.array(numbers, np.int64)


def cluster_of(launch: Launch, cta: int) -> _Extents:
    """Place in the grid of clusters of a CTA's cluster."""
    x, y, _ = launch.grid
    step = launch.cluster
    return cta % x // step[0], cta // x % y // step[1], cta // (x * y) // step[2]


def neighbours(launch: Launch, cta: int) -> dict[str, int]:
    """Numbers of the next CTAs in x, y and z, by axis; those beyond the grid are left out."""
    x, y, _ = launch.grid
    place = (cta % x, cta // x % y, cta // (x * y))
    return {
        axis: cta + step
        for axis, at, size, step in zip("xyz", place, launch.grid, (1, x, x * y), strict=True)
        if at + 1 < size
    }
