"""Are the outputs of the timed calls themselves right? Asked while a candidate is timed, not only after it.

A candidate can tell a timed call from any other: the device is kept busy before it. So whatever is looked
at outside of timed calls says nothing of them. Here

- of every timed call some elements in secret places are kept, and all its outputs are then written over, so
  that neither a result handed out again nor freed memory with the right answer in it can stand for work;
- now and then, in secret, the inputs' contents are changed in their memory, a few elements or all of them,
  and the call that follows, timed like any other, is compared as a whole;
- at the end what was kept is held against an untimed call that is compared as a whole.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from cutegen_nb.core.evaluation import Finding
from cutegen_nb.gpu import correctness, distances
from cutegen_nb.gpu.comparing import PLAIN, cloned, plain_leaves, tensors_of
from cutegen_nb.gpu.contents import change, is_loose, put, write_over
from cutegen_nb.gpu.custody import candidate_code
from cutegen_nb.gpu.record import TimingTask

_PLACES = 256
"""Elements of an output that are kept of each timed call."""
_MOST_KEPT = 1000
"""Calls on one set of inputs after which what was kept is compared, so that it does not pile up."""
LEAST_EXAMINED = 3
"""Timed calls on changed contents, at least."""
_CHANCE = 0.06
"""That a turn has one: three of the fewest turns that sampling takes."""
_SHARE = 0.2
"""Of the time, beyond the least of them."""
_COPIES = 4
"""Of the inputs and of the outputs, that a comparison on changed contents takes."""
_APART = 2.0
"""Two calls of a candidate, each within the gate, are up to so many gates apart."""

_Kept = tuple[list[torch.Tensor], list[torch.Tensor]]
"""Places in each output, and the values there."""


@dataclass(slots=True, kw_only=True)
class TimedOutputs:
    """Of one candidate on one pool of inputs."""

    task: TimingTask
    """Compares."""
    pool: Sequence[list[Any]]
    """Sets of inputs; their contents change."""
    wrong: Finding | None = None
    """The first that was found."""
    examined: int = 0
    """Timed calls on changed contents so far."""
    too_large: bool = False
    """Whether memory does not hold what a comparison on changed contents takes."""
    compared: int = 0
    """Timed calls of which elements were compared."""
    made_bytes: int = 0
    """Size of the outputs."""
    _constant: frozenset[int] = frozenset()
    _drifting: bool = False
    _loose: tuple[bool, ...] = ()
    _fresh: list[Any] = field(default_factory=list)
    _kept: dict[int, list[_Kept]] = field(default_factory=dict)
    _places: np.random.Generator = field(default_factory=lambda: np.random.default_rng(secrets.randbits(128)))
    _began: float = field(default_factory=time.monotonic)
    _spent_s: float = 0.0

    def __post_init__(self) -> None:
        """Which outputs do not depend on the inputs, and whether the reference writes into those."""
        before, other = cloned(self.pool[0]), self.task.draw(secrets.randbits(31))
        first = [item.clone() for item in tensors_of(self.task.reference(*before))]
        second = tensors_of(self.task.reference(*cloned(other)))
        self._fresh = other
        self.made_bytes = sum(item.numel() * item.element_size() for item in first)
        self._constant = frozenset(
            index
            for index, (one, two) in enumerate(zip(first, second, strict=False))
            if correctness.bits_equal(one, two)
        )
        self._loose = tuple(is_loose(item) for item in self.pool[0])
        self._drifting = any(
            isinstance(one, torch.Tensor) and not correctness.bits_equal(one, two)
            for one, two in zip(before, self.pool[0], strict=True)
        )

    def note(self, entry: int, returned: Any) -> None:
        """Keep some elements of a timed call on `pool[entry]`, then write over its outputs."""
        if self._drifting:
            return
        outputs = outputs_of(returned)
        places = [self._chosen(item) for item in outputs]
        kept = self._kept.setdefault(entry, [])
        kept.append((places, [torch.take(item, at) for item, at in zip(outputs, places, strict=True)]))
        self._write_over(outputs)
        if len(kept) >= _MOST_KEPT:
            self.settle(entry)

    def due(self) -> bool:
        """Whether this turn is to have a call on changed contents."""
        elapsed = time.monotonic() - self._began
        dear = self.examined >= LEAST_EXAMINED and self._spent_s > _SHARE * elapsed
        return not dear and random.SystemRandom().random() < _CHANCE

    def examine(self, entry: int, call: Callable[[Callable[[], None]], Any]) -> None:
        """Change contents of `pool[entry]` for one `call`, a timed one on it, and compare all that it gives.

        `call` is given what puts the contents there again, for it may have to call the candidate twice, which
        may write into its inputs.

        Nothing that takes long comes before the call, and none of another kind: neither a pause nor the
        order of calls tells that this one will be looked at.
        """
        began = time.monotonic()
        if self._lacks_room():
            self.too_large, self.examined = True, max(self.examined, LEAST_EXAMINED)
            return
        given, fresh = self.pool[entry], self._fresh or self.task.draw(secrets.randbits(31))
        kept = cloned(given)
        how = change(given, fresh, few=bool(secrets.randbelow(2)), loose=self._loose)
        drawn = cloned(given)

        def again() -> None:
            if self._drifting:
                _put(drawn, given)

        outputs = outputs_of(call(again))
        found = tuple(item.clone() for item in outputs)
        if not self._drifting:
            self._write_over(outputs)
        self._found(wrong(self.task, found, drawn, (), f"In a timed call with {how}"))
        _put(kept, given)
        self._fresh = self.task.draw(secrets.randbits(31))
        self.examined += 1
        self._spent_s += time.monotonic() - began

    def settle(self, entry: int) -> None:
        """Hold what was kept of calls on `pool[entry]` against a call that is compared as a whole."""
        kept = self._kept.pop(entry, [])
        if not kept:
            return
        given = self.pool[entry]
        drawn = cloned(given)
        with candidate_code():
            returned = self.task.candidate(*given)
            _wait(drawn)  # it may have launched on another stream, and left that as the current one
            outputs = tuple(item.clone() for item in outputs_of(returned))
        self.compared += len(kept)
        self._found(wrong(self.task, outputs, drawn, (), "After timing, on inputs that were timed"))
        if self.wrong is None:
            self._found(self._strayed(kept, outputs))

    def settle_all(self) -> None:
        """Every set of inputs."""
        for entry in range(len(self.pool)):
            self.settle(entry)

    def _strayed(self, kept: list[_Kept], outputs: tuple[torch.Tensor, ...]) -> Finding | None:
        """The finding for timed calls whose elements are not those of `outputs`."""
        if any(len(values) != len(outputs) for _, values in kept):
            message = "A timed call returned another number of outputs than other calls do."
            return Finding(kind="wrong-when-timed", message=message)
        for index, output in enumerate(outputs):
            places = torch.stack([places[index] for places, _ in kept])
            got, want = torch.stack([values[index] for _, values in kept]), torch.take(output, places)
            if correctness.bits_equal(got, want):
                continue
            bad = self._is_bad(index, got, want, output)
            calls = int(bad.any(dim=1).sum())
            if calls:
                return _strayed(index, calls, len(kept), bad, got, want)
        return None

    def _is_bad(
        self, index: int, got: torch.Tensor, want: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        gate = self.task.gates[index].element if index < len(self.task.gates) else 0.0
        rms = distances.root_mean_square(output)
        one, two = distances.real(got).double(), distances.real(want).double()
        close = (one - two).abs() <= _APART * gate * (two.abs() + rms)
        alike = (one == two) | (one.isnan() & two.isnan()) | (close & two.isfinite())
        return ~alike.reshape(len(alike), -1)

    def _lacks_room(self) -> bool:
        """Whether copies of inputs and outputs, and what compares them, do not fit beside the rest."""
        tensors = [item for item in self.pool[0] if isinstance(item, torch.Tensor)]
        if not any(item.is_cuda for item in tensors):
            return False
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        given = sum(item.numel() * item.element_size() for item in tensors)
        return _COPIES * (given + self.made_bytes) > free

    def _chosen(self, output: torch.Tensor) -> torch.Tensor:
        count = min(_PLACES, output.numel())
        places = self._places.integers(0, max(1, output.numel()), size=count)
        return torch.from_numpy(places).to(output.device)

    def _write_over(self, outputs: Sequence[torch.Tensor]) -> None:
        """All but what is an input, a parameter or the same whatever the inputs are, which may be kept."""
        own = {_storage(item) for given in self.pool for item in given if isinstance(item, torch.Tensor)}
        own |= {_storage(item) for item in self.task.kept()}
        for index, output in enumerate(outputs):
            if index not in self._constant and _storage(output) not in own:
                write_over(output)

    def _found(self, finding: Finding | None) -> None:
        self.wrong = self.wrong or finding


def wrong(
    task: TimingTask,
    outputs: tuple[torch.Tensor, ...],
    drawn: list[Any],
    before: tuple[torch.Tensor, ...],
    when: str,
) -> Finding | None:
    """The finding where `outputs` are not the reference's on `drawn`; `before` were those on others."""
    compared = task.check(outputs, drawn)
    if compared and all(item.matches for item in compared):
        return None
    if outputs and len(outputs) == len(before) and all(map(correctness.bits_equal, outputs, before)):
        message = f"{when}, the candidate gave the earlier answer again, bit for bit."
        return Finding(kind="stale-result", message=message)
    bad = next((item for item in compared if not item.matches), None)
    detail = f" {bad.bad_fraction:.2%} of output {bad.index} is wrong; {bad.pattern}" if bad else ""
    message = (
        f"{when}, the output is wrong: an earlier result was handed out again, or the calls that are timed "
        f"do other work.{detail}"
    )
    return Finding(kind="wrong-when-timed", message=message)


def _strayed(  # noqa: PLR0913, PLR0917 - what a sentence is made of
    index: int, calls: int, count: int, bad: torch.Tensor, got: torch.Tensor, want: torch.Tensor
) -> Finding:
    row, column = (int(item) for item in bad.nonzero()[0])
    seen, usual = got.reshape(bad.shape)[row, column].item(), want.reshape(bad.shape)[row, column].item()
    message = (
        f"Of {count} timed calls {calls} left wrong elements in output {index}: {int(bad.sum())} of "
        f"{bad.numel()} that were looked at, {seen:.7g} where the same call gives {usual:.7g} when it is not "
        "timed. Outputs were written over after each call: less is done in timed calls, or an earlier result "
        "is handed out again."
    )
    return Finding(kind="wrong-when-timed", message=message)


def outputs_of(returned: Any) -> list[torch.Tensor]:
    """The tensors in what a call gave."""
    # A subclass computes what it is asked for, here as well: it is no output.
    return [leaf.detach() for leaf in plain_leaves(returned) if type(leaf) in PLAIN]


def _put(contents: Sequence[Any], given: Sequence[Any]) -> None:
    """Copy `contents` into the memory of `given`."""
    for old, new in zip(given, contents, strict=True):
        if isinstance(old, torch.Tensor):
            put(new, old)


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _wait(items: Sequence[Any]) -> None:
    if any(isinstance(item, torch.Tensor) and item.is_cuda for item in items):
        torch.cuda.synchronize()
