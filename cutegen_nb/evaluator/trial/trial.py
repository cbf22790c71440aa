"""Trial of one candidate: run it and its reference on the same inputs, and check what both left behind."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.evaluation import Judged, Tier, Verdict
from cutegen_nb.core.finding import Exhibit, Finding, Severity
from cutegen_nb.core.library import ordered
from cutegen_nb.evaluator.catalog.catalog import MACHINE_CHECKS
from cutegen_nb.evaluator.catalog.correctness import (
    AGAIN,
    CONTRACT,
    INPUTS_KEPT,
    ORACLE,
    POISON,
    SEEDS,
    VALUES,
)
from cutegen_nb.evaluator.catalog.integrity import THREADS
from cutegen_nb.evaluator.catalog.work import COMPUTE, SAME_STORAGE
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.observe.compute_findings import judge_compute
from cutegen_nb.evaluator.observe.dispatch_watch import OperationNames, TorchCompute, threads
from cutegen_nb.evaluator.problem import inputs
from cutegen_nb.evaluator.problem.loader import seed_everything
from cutegen_nb.evaluator.trial import compare as comparing
from cutegen_nb.evaluator.trial.call import Caller, CallRecord
from cutegen_nb.evaluator.trial.compare import element_count, excerpts, guarded
from cutegen_nb.evaluator.trial.conditioning import REMEDY, also_right, at_random, compare_outputs
from cutegen_nb.evaluator.trial.evidence import Ending, Evidence, Task
from cutegen_nb.evaluator.trial.host_copies import judge_transfers
from cutegen_nb.evaluator.trial.kernel_reads import judge_reads
from cutegen_nb.evaluator.trial.kernel_work import compare_launches, judge_work
from cutegen_nb.evaluator.trial.library_work import judge_library
from cutegen_nb.evaluator.trial.observations import History, PairedRun, ReferenceOutputs, Truth, sample
from cutegen_nb.evaluator.trial.tampering import HarnessSnapshot, judge_harness
from cutegen_nb.evaluator.trial.work_share import of_call

_ORDINALS = ("the first call", "the second call", "the third call", "the fourth call")
"""Names of the first calls in messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A candidate and its reference, both constructed, with the evidence found so far."""

    task: Task
    """The problem and the candidate to judge."""
    ground: ExecutionDevice
    """Device that kernels run on."""
    path: Path
    """The candidate's file."""
    candidate: Callable[..., Any]
    """``ModelNew``, with the reference's state."""
    reference: torch.nn.Module
    """``Model``."""
    state: Evidence
    """Evidence found so far; it grows with every check."""
    harness: HarnessSnapshot
    """Snapshot of the harness, compared after every call and before the reference runs."""
    history: History = field(default_factory=History)
    """Earlier runs."""

    @property
    def caller(self) -> Caller:
        """Caller of the candidate."""
        return Caller(
            candidate=self.candidate,
            path=self.path,
            ground=self.ground,
            state=self.state,
            library=self.task.loaded.problem.library,
        )

    def draw(self, seed: int) -> list[Any]:
        """Draw inputs from a seed, then reseed the generators, so that the seed cannot be read from them."""
        drawn = inputs.draw(self.task.loaded, seed, self.ground.device)
        seed_everything(self.secret_seed())
        return drawn

    def run(self, seed: int, number: int) -> Ending | None:
        """Compare the outputs of one seed; return an outcome where it failed.

        `number` counts seeds from 0. The first seed is run twice, each time in fresh memory. The second
        seed's contents are put into the memory of the first seed's inputs.
        """
        drawn = self.draw(seed)
        self.state.seeds.append(seed)
        count = len(self.state.seeds)
        self.state.ran(SEEDS, f"{count} seed{'s' if count > 1 else ''}")
        given = self._same_storage(drawn) if number == 1 else guarded(drawn)
        # The first seed takes calls 0 and 1, so that seed n > 0 is call n + 1.
        ended = self.compare(drawn, given, _which(number if number == 0 else number + 1))
        if number == 0:
            self.history.first = self.history.latest
            ended = ended or self._again(self.history.first)
            if ended is None:
                self.history.release()
            return ended
        if ended is None:
            self._note_repeat(number)
            return self._reads(drawn, _which(number + 1))
        return self._stale(ended) if number == 1 else ended

    def compare(
        self, drawn: list[Any], given: list[Any], which: str, known: ReferenceOutputs | None = None
    ) -> Ending | None:
        """Run both on the inputs `drawn`, the candidate on its copies `given`; return an outcome on failure.

        `which` names the call in messages. `known` are the reference's outputs and its oracle's, where they
        have been computed already.
        """
        state = self.state
        self.history.latest = None
        called = self.caller(given)
        self._note_call(called)
        state.passed(POISON)
        ended = judge_harness(self.harness, state)
        if ended is not None:
            return ended
        known = self.answers(drawn) if known is None else known
        wanted = known.wanted
        self.history.latest = PairedRun(drawn=drawn, given=given, called=called, wanted=wanted)
        ended = comparing.modified(drawn, given, known.writes, state) or comparing.contract(
            called.leaves, wanted, state
        )
        if ended is not None:
            return ended
        state.passed(INPUTS_KEPT, CONTRACT, ORACLE)
        ended = self._values(drawn, called, wanted, known.truth)
        if ended is not None:
            return state.settle_doubts(differ=True) or ended
        state.passed(VALUES)
        if which != _ORDINALS[0]:
            ended = self._compute(called, drawn, wanted)
        ended = ended or judge_transfers(called, drawn, which, state)
        ended = ended or self._library(called, drawn, which)
        ended = ended or judge_work(called, drawn, which, state)
        if ended is not None and which == _ORDINALS[0]:
            # In the first call PyTorch may prepare data: its work decides only where another check did.
            return self._compute(called, drawn, wanted) or ended
        return ended

    def secret_seed(self) -> int:
        """Draw a seed of 31 bits from the operating system, which no candidate can know."""
        return int.from_bytes(os.urandom(4), "little") >> 1

    def conclude(self, seeds: Sequence[int]) -> Ending:
        """Return the outcome PASSED: every seed's outputs are right and no check decided against it."""
        state = self.state
        worst = max((item.relative_l2_error for item in state.outputs), default=0.0)
        rest = "that decides; see its flags" if state.findings else "more"
        closer = (
            ""
            if self.task.tier is Tier.A or state.no_faster
            else f" Tier {self.task.tier.value} found nothing {rest}."
        )
        return (
            Judged(verdict=Verdict.PASSED),
            f"Right for {len(seeds)} seeds; relative L2 error {worst:.2g} from the oracle.{closer}",
        )

    def note_ran(self, seeds: Sequence[int]) -> None:
        """Note the checks that every seed went through, and flag threads that are left."""
        state = self.state
        if len(seeds) == 1:
            state.skipped(SAME_STORAGE, "it needs a second seed")
        for check in MACHINE_CHECKS.values() if self.ground.simulation is not None else ():
            if check.name not in state.results:
                state.skipped(check, "no kernel was launched")
        state.passed(AGAIN, COMPUTE)
        more = threads() - state.threads
        if more > 0:
            message = (
                f"{more} thread(s) were started after the first call and still run: they may work outside "
                "the timed calls."
            )
            state.flag(THREADS, Finding(kind="threads", message=message, severity=Severity.FLAG))
        else:
            state.ran(THREADS)

    def _same_storage(self, drawn: list[Any]) -> list[Any]:
        """Put new contents into the memory of the first call's inputs, where shapes and dtypes agree."""
        held = self.history.first.given if self.history.first else drawn
        for old, new in zip(held, drawn, strict=True):
            if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
                continue
            if old.shape != new.shape or old.dtype != new.dtype:
                return guarded(drawn)
            # A write through `data` does not advance the version counter, on which a cache may rely.
            old.data.copy_(new)
        return [old if isinstance(old, torch.Tensor) else new for old, new in zip(held, drawn, strict=True)]

    def _stale(self, ended: Ending) -> Ending:
        """Name a stale result in place of wrong values, where the output equals that of the first call.

        CHEATED where no kernel was launched, WRONG_VALUES otherwise.
        """
        if ended[0] != Judged(verdict=Verdict.WRONG_VALUES):
            return ended
        first, now = self.history.first, self.history.latest
        if first is None or now is None:
            return ended
        pairs = list(zip(first.sample, now.called.leaves, strict=True))
        if not pairs or not all(tolerance.bits_equal(one, sample(two)) for one, two in pairs):
            return ended
        message = (
            "With new contents in the same memory the candidate gave the answer to the earlier contents, "
            "bit for bit."
        )
        if now.called.launches or now.called.launches is None:
            finding = Finding(kind="stale-result", message=message)
            return self.state.ends(SAME_STORAGE, Verdict.WRONG_VALUES, finding)
        exhibit = Exhibit(
            kind="stale-result",
            statement=f"{message} No kernel was launched in that call.",
            inputs=excerpts(now.drawn, "input"),
            outputs=excerpts(now.called.leaves, "output"),
            expected=excerpts(now.wanted, "output"),
            trace=("no kernel was launched",),
        )
        return self.state.cheated(SAME_STORAGE, exhibit)

    def _note_call(self, called: CallRecord) -> None:
        state = self.state
        state.work = of_call(called)
        state.library = ordered((*state.library, *called.library))
        if state.profile is None and not state.compile_s:
            state.compile_s = called.seconds
            state.threads = threads()
            self.caller.note_profile(called.launches)
        else:
            state.call_s = called.seconds

    def answers(self, drawn: list[Any]) -> ReferenceOutputs:
        """Run the reference and its float64 oracle; note the reason where there is no oracle.

        The reference gets copies of the inputs, since it may write into them.
        """
        operations = OperationNames() if self.history.rearranges is None else None
        wanted, writes = comparing.answered(self.reference, drawn, operations)
        if operations is not None:
            self.history.rearranges = operations.only_rearranged
            self.history.only_library = operations.only_library(self.task.loaded.problem.library)
        truth, reason = comparing.oracle(self.reference, drawn, wanted)
        if reason:
            self.state.skipped(ORACLE, reason)
        return ReferenceOutputs(wanted=wanted, truth=truth, writes=writes)

    def _values(
        self, drawn: list[Any], called: CallRecord, wanted: tuple[torch.Tensor, ...], truth: Truth
    ) -> Ending | None:
        state = self.state
        if len(state.gates) != len(wanted):
            state.gates = tolerance.find_tolerances(wanted, truth, self.task.longest_sum)
        found = compare_outputs(
            reference=self.reference,
            drawn=drawn,
            leaves=called.leaves,
            wanted=wanted,
            truth=truth,
            gates=state.gates,
            longest_sum=self.task.longest_sum,
        )
        state.outputs = found.outputs
        if found.note:
            state.ran(VALUES, found.note)
        if found.matches:
            return None
        if at_random(self.reference, drawn, wanted):
            name = self.task.loaded.problem.name
            raise ProblemError(f"{name} gives other results at each call on equal inputs {REMEDY}")
        wrong = next(item for item in found.outputs if not item.matches)
        finding = Finding(kind="wrong-values", message=tolerance.sentence(wrong))
        return state.ends(VALUES, Verdict.WRONG_VALUES, finding)

    def _compute(
        self, called: CallRecord, drawn: list[Any], wanted: tuple[torch.Tensor, ...]
    ) -> Ending | None:
        elements = element_count(drawn) + element_count(wanted)
        whole = bool(self.history.rearranges)
        findings = judge_compute(called.computed, elements, to_rearrange=whole)
        decisive = next((item for item in findings if item.severity is Severity.DECIDES), None)
        for item in findings:
            if item is not decisive and item not in self.state.findings:
                self.state.flag(COMPUTE, item)
        if decisive is None:
            return None
        exhibit = Exhibit(
            kind=decisive.kind,
            statement=decisive.message,
            inputs=excerpts(drawn, "input"),
            outputs=excerpts(called.leaves, "output"),
            trace=tuple(_compute_line(item) for item in called.computed),
            lines=(decisive.line, decisive.line) if decisive.line else None,
        )
        hidden = any(item.replaced for item in called.computed)
        return (self.state.cheated if hidden else self.state.not_own_work)(COMPUTE, exhibit)

    def _library(self, called: CallRecord, drawn: Sequence[Any], which: str) -> Ending | None:
        only = bool(self.history.only_library)
        return judge_library(called, drawn, which, self.state, only_library=only)

    def _note_repeat(self, number: int) -> None:
        if number == 1:
            self.state.ran(SAME_STORAGE)
        if self.history.repeat and self.history.latest:
            compare_launches(self.history.repeat, self.history.latest.called, self.state)

    def _again(self, first: PairedRun | None) -> Ending | None:
        """Call the candidate once more on equal inputs in fresh memory, after the reference ran."""
        if first is None:
            return None
        given = guarded(first.drawn)
        called = replace(self.caller, varied=True)(given)
        self._note_call(called)
        self.history.repeat = replace(called, leaves=[])
        ended = self._agree(first, called.leaves)
        ended = self.state.settle_doubts(differ=ended is not None) or ended
        ended = ended or self._compute(called, first.drawn, first.wanted)
        ended = ended or self._library(called, given, _ORDINALS[1])
        ended = ended or judge_work(called, given, _ORDINALS[1], self.state)
        if ended is None:
            self._note_preparation(first)
        return ended

    def _note_preparation(self, first: PairedRun) -> None:
        """Flag operations that PyTorch ran in the first call only: packed weights, tables."""
        elements = element_count(first.drawn) + element_count(first.wanted)
        for item in judge_compute(first.called.computed, elements):
            if all(known.line != item.line or known.kind != item.kind for known in self.state.findings):
                message = f"{item.message.rpartition(';')[0]}; only in the first call, to prepare later ones."
                self.state.flag(COMPUTE, replace(item, message=message, severity=Severity.FLAG))

    def _reads(self, drawn: list[Any], which: str) -> Ending | None:
        """Judge what kernels of a call on new inputs read, less what the second call read as well.

        Bytes that are equal for other inputs are a constant, and no answer.
        """
        latest, repeat = self.history.latest, self.history.repeat
        if latest is None:
            return None
        constant = set() if repeat is None else {(one.size_bytes, one.digest) for one in repeat.unexplained}
        left = tuple(one for one in latest.called.unexplained if (one.size_bytes, one.digest) not in constant)
        return judge_reads(replace(latest.called, unexplained=left), drawn, which, self.state)

    def _agree(self, first: PairedRun, seconds: list[Any]) -> Ending | None:
        state, firsts = self.state, first.called.leaves
        if _kinds(firsts) != _kinds(seconds):
            message = "Two equal calls returned different kinds of outputs."
            finding = Finding(kind="nondeterministic", message=message)
            return state.ends(AGAIN, Verdict.NONDETERMINISTIC, finding)
        for position, (one, two, gate) in enumerate(zip(firsts, seconds, state.gates, strict=True)):
            if tolerance.bits_equal(one, two):
                continue
            if tolerance.same(one, two, gate) or also_right(
                self.reference, first.drawn, seconds, first.wanted, state.gates, self.task.longest_sum
            ):
                message = f"Output {position} differs in its last bits between two equal calls."
                state.flag(AGAIN, Finding(kind="not-bit-equal", message=message, severity=Severity.FLAG))
                continue
            message = (
                f"Output {position} differs between two calls on equal inputs, by more than rounding: "
                "a race, memory read before it is written, or a result kept from an earlier call."
            )
            return state.ends(
                AGAIN, Verdict.NONDETERMINISTIC, Finding(kind="nondeterministic", message=message)
            )
        return None


def _kinds(leaves: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Type, device and layout of each output; the type alone where its attributes may run candidate code."""
    return [(type(x), x.device, x.layout) if type(x) in comparing.PLAIN else (type(x),) for x in leaves]


def _which(number: int) -> str:
    """Name of a call, counted from 0, in messages."""
    return _ORDINALS[number] if number < len(_ORDINALS) else f"call {number + 1}"


def _compute_line(item: TorchCompute) -> str:
    place = f", line {item.line}" if item.line else ""
    return f"{item.op} on {item.elements} elements{place}"
