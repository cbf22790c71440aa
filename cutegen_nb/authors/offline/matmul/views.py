"""Views of tensors as arrangements of memory, and their torch expressions in ``forward``, without copies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.authors.offline.graph.ir import ONE, Extent, elements
from cutegen_nb.authors.offline.matmul.sizes import Sizes, SymbolicSize, regrouped
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Argument

FLOATS = frozenset({"float32", "float16", "bfloat16"})
"""Supported dtypes of the tensors that a product and its epilogue read."""
_RESHAPES = frozenset(
    {"view", "_unsafe_view", "reshape", "flatten", "squeeze", "unsqueeze", "detach", "alias", "contiguous",
     "clone", "lift_fresh", "expand"}
)  # fmt: skip
"""Views in memory order; an ``expand`` that enlarges nothing and a ``clone`` keep every value."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Order of a view's dimensions in a row-major memory."""

    memory: Sizes
    """Dimensions of the memory, slowest first; none is 1."""
    dims: tuple[int | None, ...]
    """Memory dimension of each dimension of the view; None for a dimension of 1."""

    @property
    def sizes(self) -> Sizes:
        """Dimensions of the view."""
        return tuple(SymbolicSize() if at is None else self.memory[at] for at in self.dims)

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents of the view."""
        return tuple(size.extent for size in self.sizes)

    @property
    def in_order(self) -> bool:
        """True if the view runs through memory from front to back."""
        return self._walk == sorted(self._walk)

    @property
    def _walk(self) -> list[int]:
        return [at for at in self.dims if at is not None]

    def permuted(self, order: Sequence[int]) -> Arrangement:
        """Arrangement with the dimensions in another order."""
        return Arrangement(self.memory, tuple(self.dims[at] for at in order))

    def appended(self) -> Arrangement:
        """Arrangement with one more dimension of 1 at the end."""
        return Arrangement(self.memory, (*self.dims, None))

    def to_memory_order(self) -> tuple[int, ...]:
        """Permutation that makes the view run through memory from front to back."""
        places = [-1 if place is None else place for place in self.dims]
        return tuple(sorted(range(len(places)), key=places.__getitem__))

    def reshaped(self, shape: Sequence[Extent]) -> Arrangement:
        """Arrangement of the view as `shape`. Raises Declined for a copy, or for a size of unknown origin."""
        blocks = self._blocks(shape)
        parts: list[tuple[int, Sizes]] = []
        for walk, targets in blocks:
            if walk != list(range(walk[0], walk[0] + len(walk))):
                raise Declined("the offline author does not reshape a transposed tensor, which would copy it")
            parts.append((walk[0], regrouped(tuple(self.memory[at] for at in walk), targets)))
        memory: list[SymbolicSize] = []
        starts: dict[int, int] = {}
        for first, sizes in sorted(parts, key=lambda part: part[0]):
            starts[first] = len(memory)
            memory.extend(sizes)
        walk_order = [starts[first] + step for first, sizes in parts for step in range(len(sizes))]
        places = iter(walk_order)
        return Arrangement(tuple(memory), tuple(None if extent.is_one else next(places) for extent in shape))

    def _blocks(self, shape: Sequence[Extent]) -> list[tuple[list[int], list[Extent]]]:
        """Split old and new dimensions into the shortest runs with equal products."""
        targets = [extent for extent in shape if not extent.is_one]
        walk, blocks = self._walk, list[tuple[list[int], list[Extent]]]()
        while walk or targets:
            old, new = walk[:1], targets[:1]
            while old and new and (left := self._product(old)) != (right := elements(new)):
                # Extend the side with the smaller product.
                grow_new = right.full * right.scaled < left.full * left.scaled
                if len(targets if grow_new else walk) == len(new if grow_new else old):
                    break
                old = old if grow_new else walk[: len(old) + 1]
                new = targets[: len(new) + 1] if grow_new else new
            if not old or not new or self._product(old) != elements(new):
                raise Declined("the offline author cannot follow a reshape around the matrix product")
            blocks.append((old, new))
            walk, targets = walk[len(old) :], targets[len(new) :]
        return blocks

    def _product(self, walk: Sequence[int]) -> Extent:
        return elements([self.memory[at].extent for at in walk])

    def text(self, root: str, root_sizes: Sizes) -> str:
        """Torch expression for this view of the tensor `root`, whose own dimensions are `root_sizes`."""
        ones = [at for at, place in enumerate(self.dims) if place is None]
        same_memory = [size.extent for size in root_sizes] == [size.extent for size in self.memory]
        if not same_memory and self.in_order:
            if self.shape == tuple(size.extent for size in root_sizes):
                return root
            return f"{root}.view({', '.join(size.text for size in self.sizes)})"
        text = root if same_memory else f"{root}.view({', '.join(size.text for size in self.memory)})"
        if not self.in_order:
            text += ".t()" if self._walk == [1, 0] else f".permute({', '.join(map(str, self._walk))})"
        return text + "".join(f".unsqueeze({at})" for at in ones)


def arrangement_of(sizes: Sizes) -> Arrangement:
    """Arrangement of a row-major tensor itself."""
    memory = tuple(size for size in sizes if size.extent != ONE)
    places = iter(range(len(memory)))
    return Arrangement(memory, tuple(None if size.extent == ONE else next(places) for size in sizes))


@dataclass(frozen=True, slots=True)
class View:
    """View of an input or parameter."""

    root: str
    """Input or parameter, as ``forward`` writes it: ``self.gemm.weight``."""
    root_sizes: Sizes
    """Dimensions of the root."""
    arrangement: Arrangement
    """Arrangement of the view in the root's memory."""
    dtype: str
    """torch's dtype name."""
    contiguous: bool
    """True if the root is row-major in memory."""

    @property
    def sizes(self) -> Sizes:
        """Dimensions of the view."""
        return self.arrangement.sizes

    @property
    def text(self) -> str:
        """Torch expression for the view."""
        return self.arrangement.text(self.root, self.root_sizes)

    def arranged(self, arrangement: Arrangement) -> View:
        """Return another view of the root. Raises Declined where a reshape of strided memory might copy."""
        if not self.contiguous and [s.extent for s in arrangement.memory] != [
            s.extent for s in self.arrangement.memory
        ]:
            raise Declined(f"the offline author does not reshape {self.root}, which is not contiguous")
        return View(self.root, self.root_sizes, arrangement, self.dtype, self.contiguous)


def moved(
    arrangement: Arrangement, op: str, args: Sequence[Argument], shape: Sequence[Extent]
) -> Arrangement | None:
    """Return the arrangement after the operation `op` with result `shape`; None where it is no view.

    Raises Declined for a view that would copy.
    """
    rank = len(arrangement.dims)
    if op in _RESHAPES:
        if elements(shape) != elements(arrangement.shape):
            raise Declined("the offline author does not write a product over a broadcast operand")
        return arrangement if tuple(shape) == arrangement.shape else arrangement.reshaped(shape)
    if op == "t":
        return arrangement.permuted(tuple(reversed(range(rank))))
    if op == "permute" and isinstance(args[1], tuple):
        return arrangement.permuted([dim % rank for dim in args[1] if isinstance(dim, int)])
    if op == "transpose" and isinstance(args[1], int) and isinstance(args[2], int):
        order = list(range(rank))
        first, second = args[1] % rank, args[2] % rank
        order[first], order[second] = second, first
        return arrangement.permuted(order)
    return None
