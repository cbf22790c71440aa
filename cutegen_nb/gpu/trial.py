"""One candidate against its reference: run it, run the reference, look at what both left behind."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.errors import ProblemError
from cutegen_nb.core.evaluation import (
    Exhibit,
    Finding,
    Judged,
    Severity,
    Tier,
    Verdict,
)
from cutegen_nb.gpu import comparing, correctness, inputs
from cutegen_nb.gpu.calling import Called, Caller
from cutegen_nb.gpu.checks.host_copies import judge_transfers
from cutegen_nb.gpu.checks.read_origin import judge_reads
from cutegen_nb.gpu.checks.registry import MACHINE_CHECKS
from cutegen_nb.gpu.checks.registry.function import (
    AGAIN,
    CONTRACT,
    INPUTS_KEPT,
    ORACLE,
    POISON,
    SEEDS,
    VALUES,
)
from cutegen_nb.gpu.checks.registry.harness import THREADS
from cutegen_nb.gpu.checks.registry.work import COMPUTE, SAME_STORAGE
from cutegen_nb.gpu.checks.work_done import compare_launches, judge_work
from cutegen_nb.gpu.comparing import cloned, element_count, excerpts, guarded, tensors_of
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.harness import HarnessIdentity, judge_harness
from cutegen_nb.gpu.interception import Operations, TorchCompute, judge_compute, threads
from cutegen_nb.gpu.problem_source import seed_everything
from cutegen_nb.gpu.record import Ending, Evidence, Task
from cutegen_nb.gpu.runs import Answers, Compared, History, Truth
from cutegen_nb.gpu.second_look import REMEDY, also_right, at_random, second_look

_ORDINALS = ("the first call", "the second call", "the third call", "the fourth call")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Both models built."""

    task: Task
    """What was asked for."""
    ground: Ground
    """Where kernels run."""
    path: Path
    """The candidate's file."""
    candidate: Callable[..., Any]
    """``ModelNew``, with the reference's state."""
    reference: torch.nn.Module
    """``Model``."""
    state: Evidence
    """What is found; it grows."""
    harness: HarnessIdentity
    """Looked at after every call, before the reference runs."""
    history: History = field(default_factory=History)
    """What was run before."""

    @property
    def caller(self) -> Caller:
        """What calls the candidate."""
        return Caller(candidate=self.candidate, path=self.path, ground=self.ground, state=self.state)

    def draw(self, seed: int) -> list[Any]:
        """Inputs of a seed; the generators are set elsewhere afterwards, so that it cannot be read off."""
        drawn = inputs.draw(self.task.loaded, seed, self.ground.device)
        seed_everything(self.secret_seed())
        return drawn

    def run(self, seed: int, number: int) -> Ending | None:
        """Compare the outputs of one seed; an outcome when it failed.

        The first seed is run twice, each time in fresh memory; the second seed's contents are put into
        the memory of the first one's inputs.
        """
        drawn = self.draw(seed)
        self.state.seeds.append(seed)
        count = len(self.state.seeds)
        self.state.ran(SEEDS, f"{count} seed{'s' if count > 1 else ''}")
        given = self._same_storage(drawn) if number == 1 else guarded(drawn)
        ended = self.compare(drawn, given, _which(number if number == 0 else number + 1))
        if number == 0:
            self.history.first = self.history.latest
            return ended or self._again(self.history.first)
        if ended is None:
            self._note_repeat(number)
            return self._reads(drawn, _which(number + 1))
        return self._stale(ended) if number == 1 else ended

    def compare(
        self, drawn: list[Any], given: list[Any], which: str, known: Answers | None = None
    ) -> Ending | None:
        """Run both on the inputs `drawn`, the candidate on its copies `given`; an outcome when it is wrong.

        `known` is what the reference gives, and its oracle, where that has been computed already.
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
        self.history.latest = Compared(drawn=drawn, given=given, called=called, wanted=wanted)
        ended = comparing.modified(drawn, given, known.inputs_after, state) or comparing.contract(
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
        ended = ended or judge_work(called, drawn, which, state)
        ended = ended or judge_transfers(called, drawn, which, state)
        if ended is not None and which == _ORDINALS[0]:
            # PyTorch may prepare something in the first call; where no kernel works after it, it did not.
            return self._compute(called, drawn, wanted) or ended
        return ended

    def secret_seed(self) -> int:
        """A seed that no candidate can know."""
        return int.from_bytes(os.urandom(4), "little") >> 1

    def conclude(self, seeds: Sequence[int]) -> Ending:
        """Every seed's outputs are right, and nothing above tier A found anything."""
        state = self.state
        worst = max((item.relative_l2_error for item in state.outputs), default=0.0)
        rest = "that decides; see its flags" if state.findings else "more"
        closer = "" if self.task.tier is Tier.A else f" Tier {self.task.tier.value} found nothing {rest}."
        return (
            Judged(verdict=Verdict.PASSED),
            f"Right for {len(seeds)} seeds; relative L2 error {worst:.2g} from the oracle.{closer}",
        )

    def note_ran(self, seeds: Sequence[int]) -> None:
        """What every seed went through, and whether threads were left."""
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
                f"{more} thread(s) were started after the first call and still run: work outside the clock?"
            )
            state.flag(THREADS, Finding(kind="threads", message=message, severity=Severity.FLAG))
        else:
            state.ran(THREADS)

    def _same_storage(self, drawn: list[Any]) -> list[Any]:
        """The new contents in the memory of the first call's inputs."""
        held = self.history.first.given if self.history.first else drawn
        for old, new in zip(held, drawn, strict=True):
            if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
                continue
            if old.shape != new.shape or old.dtype != new.dtype:
                return guarded(drawn)
            # Past the version counter as well, which a memo may go by.
            old.data.copy_(new)
        return [old if isinstance(old, torch.Tensor) else new for old, new in zip(held, drawn, strict=True)]

    def _stale(self, ended: Ending) -> Ending:
        """Wrong in the memory of earlier inputs: is it the earlier answer, and did no kernel write it?"""
        if ended[0] != Judged(verdict=Verdict.WRONG_VALUES):
            return ended
        first, now = self.history.first, self.history.latest
        if first is None or now is None:
            return ended
        pairs = list(zip(first.called.leaves, now.called.leaves, strict=True))
        if not pairs or not all(correctness.bits_equal(one, two) for one, two in pairs):
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

    def _note_call(self, called: Called) -> None:
        state = self.state
        if state.profile is None and not state.compile_s:
            state.compile_s = called.seconds
            state.threads = threads()
            state.profile = self.caller.profile(called.launches)
        else:
            state.call_s = called.seconds

    def answers(self, drawn: list[Any]) -> Answers:
        """What the reference gives; the reason is noted where there is no oracle."""
        after = cloned(drawn)
        with Operations() if self.history.rearranges is None else contextlib.nullcontext() as operations:
            wanted = tensors_of(self.reference(*after))
        if operations is not None:
            self.history.rearranges = operations.only_rearranged
        truth, reason = comparing.oracle(self.reference, drawn, wanted)
        if reason:
            self.state.skipped(ORACLE, reason)
        return Answers(wanted=wanted, truth=truth, inputs_after=after)

    def _values(
        self, drawn: list[Any], called: Called, wanted: tuple[torch.Tensor, ...], truth: Truth
    ) -> Ending | None:
        state = self.state
        if len(state.gates) != len(wanted):
            state.gates = tuple(
                correctness.find_gate(want, true, self.task.longest_sum)
                for want, true in zip(wanted, truth, strict=True)
            )
        state.outputs = comparing.compared(called.leaves, wanted, truth, state.gates, drawn)
        if not all(item.matches for item in state.outputs):
            again = second_look(
                reference=self.reference,
                drawn=drawn,
                leaves=called.leaves,
                wanted=wanted,
                truth=truth,
                gates=state.gates,
                outputs=state.outputs,
            )
            state.outputs = again.outputs
            if any(not item.matches for item in again.outputs) and at_random(self.reference, drawn, wanted):
                name = self.task.loaded.problem.name
                raise ProblemError(f"{name} gives other results at each call on equal inputs {REMEDY}")
            if again.note:
                state.ran(VALUES, again.note)
        wrong = next((item for item in state.outputs if not item.matches), None)
        if wrong is None:
            return None
        finding = Finding(kind="wrong-values", message=correctness.sentence(wrong))
        return state.ends(VALUES, Verdict.WRONG_VALUES, finding)

    def _compute(self, called: Called, drawn: list[Any], wanted: tuple[torch.Tensor, ...]) -> Ending | None:
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
        return self.state.cheated(COMPUTE, exhibit)

    def _note_repeat(self, number: int) -> None:
        if number == 1:
            self.state.ran(SAME_STORAGE)
        if self.history.repeat and self.history.latest:
            compare_launches(self.history.repeat, self.history.latest.called, self.state)

    def _again(self, first: Compared | None) -> Ending | None:
        """The candidate once more on equal inputs in fresh memory, after the reference ran."""
        if first is None:
            return None
        given = guarded(first.drawn)
        called = replace(self.caller, varied=True)(given)
        self._note_call(called)
        self.history.repeat = replace(called, leaves=[])
        ended = self._agree(first, called.leaves)
        ended = self.state.settle_doubts(differ=ended is not None) or ended
        ended = ended or self._compute(called, first.drawn, first.wanted)
        ended = ended or judge_work(called, given, _ORDINALS[1], self.state)
        if ended is None:
            self._note_preparation(first)
        return ended

    def _note_preparation(self, first: Compared) -> None:
        """A flag for what PyTorch computed in the first call and not again: packed weights, tables."""
        elements = element_count(first.drawn) + element_count(first.wanted)
        for item in judge_compute(first.called.computed, elements):
            if all(known.line != item.line or known.kind != item.kind for known in self.state.findings):
                message = f"{item.message.rpartition(';')[0]}; only in the first call, to prepare later ones."
                self.state.flag(COMPUTE, replace(item, message=message, severity=Severity.FLAG))

    def _reads(self, drawn: list[Any], which: str) -> Ending | None:
        """Of a call on other inputs than the first two: what those read as well is no answer."""
        latest, repeat = self.history.latest, self.history.repeat
        if latest is None:
            return None
        constant = set() if repeat is None else {(one.size_bytes, one.digest) for one in repeat.unexplained}
        left = tuple(one for one in latest.called.unexplained if (one.size_bytes, one.digest) not in constant)
        return judge_reads(replace(latest.called, unexplained=left), drawn, which, self.state)

    def _agree(self, first: Compared, seconds: list[Any]) -> Ending | None:
        state, firsts = self.state, first.called.leaves
        if _kinds(firsts) != _kinds(seconds):
            message = "Two equal calls returned different kinds of outputs."
            finding = Finding(kind="nondeterministic", message=message)
            return state.ends(AGAIN, Verdict.NONDETERMINISTIC, finding)
        for position, (one, two, gate) in enumerate(zip(firsts, seconds, state.gates, strict=True)):
            if correctness.bits_equal(one, two):
                continue
            if correctness.same(one, two, gate) or also_right(
                self.reference, first.drawn, seconds, first.wanted, state.gates
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
    """What has to agree before contents can be compared; a type of the candidate's own is asked nothing."""
    return [(type(x), x.device, x.layout) if type(x) in comparing.PLAIN else (type(x),) for x in leaves]


def _which(number: int) -> str:
    return _ORDINALS[number] if number < len(_ORDINALS) else f"call {number + 1}"


def _compute_line(item: TorchCompute) -> str:
    place = f", line {item.line}" if item.line else ""
    return f"{item.op} on {item.elements} elements{place}"
