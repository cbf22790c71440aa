"""Results of the operators that a problem's library policy leaves to PyTorch, during one call.

A hybrid candidate has to do a part of the work in kernels of its own. An output is the library's *alone* if
no kernel touched it on its way: an allowed operator made it from inputs and parameters, or from other results
that are the library's alone, and it still holds what the operator wrote.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

import torch

from cutegen_nb.core.library import Library, LibraryFamily, ordered
from cutegen_nb.evaluator.numerics.tolerance import bits_equal
from cutegen_nb.evaluator.observe.provenance import address_of
from cutegen_nb.evaluator.observe.read_sources import FROM_NOTHING


class LibraryResults:
    """Allowed operators of one call, and the storages that are the library's alone."""

    def __init__(self, allowed: Library, given: Iterable[torch.Tensor]) -> None:
        """`given` are the inputs, the parameters and the buffers."""
        self._allowed = frozenset(allowed)
        self._given = {address_of(item): item for item in given if address_of(item)}
        self._kept: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._used: set[LibraryFamily] = set()

    def allows(self, family: LibraryFamily | None) -> bool:
        """Return whether the policy leaves a family to PyTorch."""
        return family in self._allowed

    @property
    def used(self) -> Library:
        """Families of the allowed operators that ran."""
        return ordered(self._used)

    def ran(
        self, family: LibraryFamily, sources: Sequence[torch.Tensor], results: Sequence[torch.Tensor]
    ) -> None:
        """Record an allowed operator."""
        self._used.add(family)
        self._keep(sources, results)

    def passed_on(
        self, name: str, sources: Sequence[torch.Tensor], results: Sequence[torch.Tensor], *, moves: bool
    ) -> None:
        """Record another operator of PyTorch: a copy of what is the library's alone is that too."""
        if name in FROM_NOTHING and not name.startswith(("empty", "new_empty")):
            self._keep((), results)
        elif moves:
            # The first argument of ``copy_`` is the destination, whose old contents do not matter.
            self._keep(sources[1:] if name == "copy_" else sources, results)

    def alone(self, output: torch.Tensor) -> bool:
        """Return whether an output is the library's alone, or an input as it was."""
        address = address_of(output)
        if address in self._given:
            return True
        kept = self._kept.get(address)
        # The tensor beside the copy keeps the storage, so that no other tensor gets its address.
        return kept is not None and bits_equal(_in_memory_order(kept[0]), kept[1])

    def copied(self, output: torch.Tensor) -> bool:
        """Return whether an output holds, in memory order, an input or a result of the library alone."""
        if not address_of(output):
            return False
        held = _in_memory_order(output)
        others = (*map(_in_memory_order, self._given.values()), *(copy for _, copy in self._kept.values()))
        return any(bits_equal(other, held) for other in others)

    def _keep(self, sources: Sequence[torch.Tensor], results: Sequence[torch.Tensor]) -> None:
        is_alone = all(self.alone(item) or self.copied(item) for item in sources)
        before = {address_of(item) for item in sources}
        for item in results:
            address = address_of(item)
            if address in self._given or (address in before and is_alone):
                continue  # a view
            self._kept.pop(address, None)
            if is_alone and address:
                # Where memory does not hold the copy, the result does not count as the library's alone.
                with contextlib.suppress(torch.OutOfMemoryError, MemoryError):
                    self._kept[address] = (item, _in_memory_order(item).clone())


def _in_memory_order(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of a tensor's elements in memory order, so that a transposed view equals its source."""
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - the memory itself, past any mode
        plain = tensor.detach().resolve_conj().resolve_neg()
        slowest_first = sorted(range(plain.dim()), key=plain.stride, reverse=True)
        return plain.permute(slowest_first).contiguous().view(-1).view(torch.uint8)
