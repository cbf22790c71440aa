"""Correctness of the outputs of timed calls, checked while a candidate is timed.

A candidate can tell a timed call from any other, because the device is kept busy before it. Checks of other
calls therefore say nothing of timed ones. There are three checks:

- Random elements of every timed call's outputs are kept, and all its outputs are then overwritten. Neither an
  earlier result nor freed memory with the right answer in it can pass for work.
- At random times the inputs' contents are changed in place, a few elements or all of them. The next call,
  timed like any other, is compared in full.
- At the end the kept elements are compared with those of an untimed call that is compared in full.
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

from cutegen_nb.core.finding import Finding
from cutegen_nb.evaluator.numerics import distance, tolerance
from cutegen_nb.evaluator.observe.isolation import candidate_code
from cutegen_nb.evaluator.observe.memory_contents import change, elements_independent, put, write_over
from cutegen_nb.evaluator.trial.compare import PLAIN, cloned, plain_leaves, tensors_of
from cutegen_nb.evaluator.trial.evidence import TimingTask

_PLACES = 256
"""Elements kept of each output of a timed call."""
_MOST_KEPT = 1000
"""Calls on one set of inputs after which kept elements are compared and dropped, to bound memory."""
LEAST_EXAMINED = 3
"""Fewest timed calls on changed contents."""
_CHANCE = 0.06
"""Probability that a turn has a call on changed contents: three on average in the fewest 50 turns."""
_SHARE = 0.2
"""Share of the time that calls on changed contents may take once the fewest are done."""
_COPIES = 4
"""Copies of inputs and outputs in memory that a comparison on changed contents takes."""
_MOST_GATES_APART = 2.0
"""Most gates between two calls of a candidate: each may be one gate from the reference."""

_Kept = tuple[list[torch.Tensor], list[torch.Tensor]]
"""Flat indices into each output, and the values there."""


@dataclass(slots=True, kw_only=True)
class TimedOutputs:
    """Checks of one candidate's timed outputs on one pool of inputs."""

    task: TimingTask
    """Candidate, reference and comparison."""
    pool: Sequence[list[Any]]
    """Sets of inputs; their contents change."""
    wrong: Finding | None = None
    """First finding; None while all outputs were right."""
    examined: int = 0
    """Timed calls on changed contents so far."""
    too_large: bool = False
    """True if memory does not hold the copies for a comparison on changed contents."""
    compared: int = 0
    """Timed calls whose kept elements were compared."""
    made_bytes: int = 0
    """Size of the outputs in bytes."""
    _constant: frozenset[int] = frozenset()
    _drifting: bool = False
    _loose: tuple[bool, ...] = ()
    _fresh: list[Any] = field(default_factory=list)
    _kept: dict[int, list[_Kept]] = field(default_factory=dict)
    # Seeded with 128 secret bits, so that no candidate can foretell the places.
    _places: np.random.Generator = field(default_factory=lambda: np.random.default_rng(secrets.randbits(128)))
    _began: float = field(default_factory=time.monotonic)
    _spent_s: float = 0.0

    def __post_init__(self) -> None:
        """Find outputs that do not depend on the inputs, and whether the reference changes its inputs."""
        before, other = cloned(self.pool[0]), self.task.draw(secrets.randbits(31))
        first = [item.clone() for item in tensors_of(self.task.reference(*before))]
        second = tensors_of(self.task.reference(*cloned(other)))
        self._fresh = other
        self.made_bytes = sum(item.numel() * item.element_size() for item in first)
        self._constant = frozenset(
            index
            for index, (one, two) in enumerate(zip(first, second, strict=False))
            if tolerance.bits_equal(one, two)
        )
        self._loose = tuple(elements_independent(item) for item in self.pool[0])
        self._drifting = any(
            isinstance(one, torch.Tensor) and not tolerance.bits_equal(one, two)
            for one, two in zip(before, self.pool[0], strict=True)
        )

    def note(self, entry: int, returned: Any) -> None:
        """Keep random elements of a timed call on `pool[entry]`, then overwrite its outputs.

        Nothing is done where the reference changes its inputs.
        """
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
        """Return whether this turn is to have a call on changed contents."""
        elapsed = time.monotonic() - self._began
        dear = self.examined >= LEAST_EXAMINED and self._spent_s > _SHARE * elapsed
        # The system's generator, which a candidate cannot seed.
        return not dear and random.SystemRandom().random() < _CHANCE

    def examine(self, entry: int, call: Callable[[Callable[[], None]], Any]) -> None:
        """Change contents of `pool[entry]`, make one timed `call` on it and compare its outputs in full.

        `call` receives a function that restores the changed contents. It may have to call the candidate
        twice, and the candidate may write into its inputs.

        Nothing slow and no call of another kind comes first: neither a pause nor the order of calls tells a
        candidate that this call is compared.
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
        _put(kept, given)  # later timed calls are compared on the original contents
        self._fresh = self.task.draw(secrets.randbits(31))
        self.examined += 1
        self._spent_s += time.monotonic() - began

    def settle(self, entry: int) -> None:
        """Compare kept elements of calls on `pool[entry]` with an untimed call that is compared in full."""
        kept = self._kept.pop(entry, [])
        if not kept:
            return
        given = self.pool[entry]
        drawn = cloned(given)
        with candidate_code():
            returned = self.task.candidate(*given)
            _wait(drawn)  # the candidate may have left another stream as the current one
            outputs = tuple(item.clone() for item in outputs_of(returned))
        self.compared += len(kept)
        self._found(wrong(self.task, outputs, drawn, (), "After timing, on inputs that were timed"))
        if self.wrong is None:
            self._found(self._timed_elements_differ(kept, outputs))

    def settle_all(self) -> None:
        """Compare the kept elements of every set of inputs; see `settle`."""
        for entry in range(len(self.pool)):
            self.settle(entry)

    def _timed_elements_differ(self, kept: list[_Kept], outputs: tuple[torch.Tensor, ...]) -> Finding | None:
        """Finding for timed calls whose kept elements differ from those of `outputs`; None otherwise."""
        if any(len(values) != len(outputs) for _, values in kept):
            message = "A timed call returned another number of outputs than other calls do."
            return Finding(kind="wrong-when-timed", message=message)
        for index, output in enumerate(outputs):
            places = torch.stack([places[index] for places, _ in kept])
            got, want = torch.stack([values[index] for _, values in kept]), torch.take(output, places)
            if tolerance.bits_equal(got, want):  # the usual case, without float64 copies
                continue
            bad = self._is_bad(index, got, want, output)
            calls = int(bad.any(dim=1).sum())
            if calls:
                return _timed_elements_differ(index, calls, len(kept), bad, got, want)
        return None

    def _is_bad(
        self, index: int, got: torch.Tensor, want: torch.Tensor, output: torch.Tensor
    ) -> torch.Tensor:
        """Mask of elements that differ, one row a call; `output` is the untimed call's output."""
        gate = self.task.gates[index].element if index < len(self.task.gates) else 0.0
        rms = distance.root_mean_square(output)
        one, two = distance.real(got).double(), distance.real(want).double()
        # The element gate's scale, |element| + rms of the output, times two gates.
        close = (one - two).abs() <= _MOST_GATES_APART * gate * (two.abs() + rms)
        # Equality first: it holds for infinities too, whose difference is NaN.
        alike = (one == two) | (one.isnan() & two.isnan()) | (close & two.isfinite())
        return ~alike.reshape(len(alike), -1)

    def _lacks_room(self) -> bool:
        """Return whether the copies for a comparison exceed the free GPU memory."""
        tensors = [item for item in self.pool[0] if isinstance(item, torch.Tensor)]
        if not any(item.is_cuda for item in tensors):
            return False
        # The driver's free memory, and blocks that PyTorch's allocator has cached but not handed out.
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        given = sum(item.numel() * item.element_size() for item in tensors)
        return _COPIES * (given + self.made_bytes) > free

    def _chosen(self, output: torch.Tensor) -> torch.Tensor:
        count = min(_PLACES, output.numel())
        # With replacement: places that coincide do no harm.
        places = self._places.integers(0, max(1, output.numel()), size=count)
        return torch.from_numpy(places).to(output.device)

    def _write_over(self, outputs: Sequence[torch.Tensor]) -> None:
        """Overwrite outputs; leave inputs, parameters and constants, which a candidate may return."""
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
    """Finding where `outputs` differ from the reference's on `drawn`; None where they match.

    `before` are the outputs on earlier contents: equal to them bit for bit, `outputs` are a stale result.
    `when` begins the message.
    """
    compared = task.check(outputs, drawn)
    if compared and all(item.matches for item in compared):
        return None
    if outputs and len(outputs) == len(before) and all(map(tolerance.bits_equal, outputs, before)):
        message = f"{when}, the candidate gave the earlier answer again, bit for bit."
        return Finding(kind="stale-result", message=message)
    bad = next((item for item in compared if not item.matches), None)
    detail = f" {bad.bad_fraction:.2%} of output {bad.index} is wrong; {bad.pattern}" if bad else ""
    message = (
        f"{when}, the output is wrong: an earlier result was handed out again, or the calls that are timed "
        f"do other work.{detail}"
    )
    return Finding(kind="wrong-when-timed", message=message)


def _timed_elements_differ(  # noqa: PLR0913, PLR0917 - what a sentence is made of
    index: int, calls: int, count: int, bad: torch.Tensor, got: torch.Tensor, want: torch.Tensor
) -> Finding:
    row, column = (int(item) for item in bad.nonzero()[0])
    seen, usual = got.reshape(bad.shape)[row, column].item(), want.reshape(bad.shape)[row, column].item()
    message = (
        f"Of {count} timed calls {calls} left wrong elements in output {index}: {int(bad.sum())} of "
        f"{bad.numel()} that were compared, {seen:.7g} where the same call gives {usual:.7g} when it is not "
        "timed. Outputs were overwritten after each call: timed calls do less work, or they return an "
        "earlier result."
    )
    return Finding(kind="wrong-when-timed", message=message)


def outputs_of(returned: Any) -> list[torch.Tensor]:
    """Return the tensors in a call's return value, without subclasses of a tensor."""
    # A subclass may compute when it is read, here too: it is no output.
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
