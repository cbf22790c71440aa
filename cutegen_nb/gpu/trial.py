"""One seed of one candidate: run it, run the reference, look at what both left behind."""

from __future__ import annotations

import copy
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import Finding, Judged, Outcome, OutputComparison, Severity, Timing, Verdict
from cutegen_nb.core.profile import Profile, ProfileSource
from cutegen_nb.gpu import correctness, inputs
from cutegen_nb.gpu.candidate_module import FILE_NAME
from cutegen_nb.gpu.faults import RUNNING, CandidateFault, blamed, from_simulator
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.interception import ForwardWatch, judge_compute, threads
from cutegen_nb.gpu.problem_source import LoadedProblem

Stage = Callable[[str], None]
"""Told what is being done now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What the worker is asked to judge."""

    loaded: LoadedProblem
    """The problem at the size to run."""
    source: str
    """The candidate's file."""
    digest: str
    """Its SHA-256, taken before any of it ran."""
    folder: Path
    """A folder of its own, made when it is needed."""
    gates: tuple[correctness.Gate, ...]
    """Gates found for this problem before; empty the first time."""
    longest_sum: int
    """About how many terms the reference's longest sum has, at the size to run."""
    time_it: Callable[[TimingTask], tuple[Timing | None, tuple[Finding, ...], Outcome | None]] | None
    """Measures a correct candidate on a GPU; None on the simulator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingTask:
    """A correct candidate with everything its timing needs."""

    candidate: Callable[..., Any]
    """``ModelNew``."""
    reference: torch.nn.Module
    """``Model``, same state."""
    draw: Callable[[int], list[Any]]
    """Fresh inputs for a seed, on the device."""
    check: Callable[[tuple[torch.Tensor, ...], list[Any]], tuple[OutputComparison, ...]]
    """Compares outputs of a timed call with the reference on the same inputs."""
    seed: int
    """Not among the seeds of the correctness runs."""
    compile_s: float
    """What the first call took."""


@dataclass(slots=True, kw_only=True)
class Evidence:
    """What is known so far; becomes the Evaluation however the run ends."""

    findings: list[Finding] = field(default_factory=list)
    """What decides comes first."""
    checks: list[str] = field(default_factory=list)
    """That ran."""
    not_run: list[str] = field(default_factory=list)
    """That did not, with the reason."""
    seeds: list[int] = field(default_factory=list)
    """Of the inputs compared so far."""
    outputs: tuple[OutputComparison, ...] = ()
    """Of the latest seed."""
    gates: tuple[correctness.Gate, ...] = ()
    """One for each output, once they are known."""
    profile: Profile | None = None
    """Of the first call, on the simulator."""
    timing: Timing | None = None
    """On a GPU."""
    compile_s: float = 0.0
    """What the first call took."""
    threads: int = 0
    """Of the process after the first call, when everything is compiled."""


def cheated(kind: str, message: str, state: Evidence) -> tuple[Outcome, str]:
    """The outcome for a clear cheat, with its evidence put first."""
    state.findings.insert(0, Finding(kind=kind, message=message))
    return Judged(verdict=Verdict.CHEATED), message


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Both models built; each seed is one trial."""

    task: Task
    ground: Ground
    path: Path
    candidate: Callable[..., Any]
    reference: torch.nn.Module
    state: Evidence

    def run(self, seed: int, *, first: bool) -> tuple[Outcome, str] | None:
        """Compare one seed's outputs; an outcome when it failed."""
        state = self.state
        drawn = inputs.draw(self.task.loaded, seed, self.ground.device)
        given = _clone(drawn)
        self._label(given)
        began = time.monotonic()
        outputs, watch = self._forward(given)
        if first:
            state.compile_s = time.monotonic() - began
            state.threads = threads()
            state.profile = self._profile()
        expected_inputs = _clone(drawn)
        wanted = _tensors(self.reference(*expected_inputs))
        state.seeds.append(seed)
        ended = (
            self._modified(drawn, given, expected_inputs)
            or self._contract(outputs, wanted)
            or self._values(drawn, outputs, wanted)
        )
        findings = judge_compute(watch.computed, _elements(drawn) + _elements(wanted))
        state.findings += [item for item in findings if item not in state.findings]
        if ended is not None:
            return ended
        decisive = next((item for item in findings if item.severity is Severity.DECIDES), None)
        if decisive is not None:
            return Judged(verdict=Verdict.CHEATED), decisive.message
        return self._again(drawn, outputs) if first else None

    def conclude(self, seeds: Sequence[int], stage: Stage) -> tuple[Outcome, str]:
        """Every seed's outputs are right: was it a kernel that made them, and how fast?"""
        state = self.state
        state.checks += [
            f"{len(seeds)} fresh seeds drawn after the import",
            "number, shape and dtype of outputs",
            "values against the float64 oracle, element gate and relative L2",
            "outputs poisoned",
            "inputs unchanged",
            "candidate, reference, candidate again",
            "PyTorch computation intercepted",
        ]
        if state.profile is not None:
            if not state.profile.launches and _elements(state.outputs):
                return cheated(
                    "no-kernel",
                    "The outputs are right but no kernel was launched in the first call of forward: "
                    "something else made them.",
                    state,
                )
            state.checks.append("a kernel was launched")
        more = threads() - state.threads
        if more > 0:
            message = (
                f"{more} thread(s) were started after the first call and still run: work outside the clock?"
            )
            state.findings.append(Finding(kind="threads", message=message, severity=Severity.FLAG))
        if self.task.time_it is not None:
            stage("timing")
            state.timing, findings, outcome = self.task.time_it(self._timing_task(seeds))
            state.findings += findings
            if outcome is not None:
                return outcome, findings[0].message
        worst = max((item.relative_l2_error for item in state.outputs), default=0.0)
        return (
            Judged(verdict=Verdict.PASSED),
            f"Right for {len(seeds)} seeds; relative L2 error {worst:.2g} from the oracle.",
        )

    def _timing_task(self, seeds: Sequence[int]) -> TimingTask:
        def check(outputs: tuple[torch.Tensor, ...], drawn: list[Any]) -> tuple[OutputComparison, ...]:
            wanted = _tensors(self.reference(*_clone(drawn)))
            if [(o.shape, o.dtype) for o in outputs] != [(w.shape, w.dtype) for w in wanted]:
                return ()
            return tuple(
                correctness.compare(i, out, want, None, gate, ())
                for i, (out, want, gate) in enumerate(zip(outputs, wanted, self.state.gates, strict=True))
            )

        return TimingTask(
            candidate=self.candidate,
            reference=self.reference,
            draw=lambda seed: inputs.draw(self.task.loaded, seed, self.ground.device),
            check=check,
            seed=seeds[0] ^ 0x5EED,
            compile_s=self.state.compile_s,
        )

    def _label(self, given: list[Any]) -> None:
        for position, item in enumerate(given):
            if isinstance(item, torch.Tensor):
                self.ground.label(item, f"input {position}")
        if isinstance(self.candidate, torch.nn.Module):
            for name, parameter in self.candidate.state_dict().items():
                self.ground.label(parameter, name)

    def _forward(self, given: list[Any]) -> tuple[Any, ForwardWatch]:
        """One call of the candidate. Raises CandidateFault; the machine's own finding comes first."""
        self.ground.reset()
        watch = ForwardWatch(str(self.path), self.ground.label)
        try:
            with blamed(RUNNING, self.path), watch:
                returned = self.candidate(*given)
                self.ground.synchronize()
        except CandidateFault as fault:
            self._raise_simulated_fault()
            if fault.outcome != Judged(verdict=Verdict.OUT_OF_MEMORY):
                self._refuse_half_a_result(str(fault))
            raise
        self._raise_simulated_fault()
        self._refuse_half_a_result("the candidate caught the exception")
        # Copied at once: a candidate may hand out the same buffer at its next call.
        return tree_map(lambda item: item.clone() if type(item) is torch.Tensor else item, returned), watch

    def _raise_simulated_fault(self) -> None:
        simulation = self.ground.simulation
        if simulation is not None and simulation.fault is not None:
            self.state.profile = self._profile()
            raise from_simulator(simulation.fault)

    def _refuse_half_a_result(self, seen: str) -> None:
        """A launch that neither finished nor found a fault is our failure, not the candidate's."""
        simulation = self.ground.simulation
        if simulation is not None and simulation.unfinished:
            message = (
                f"The simulator failed in kernel {simulation.unfinished}: {seen}. This is a fault of "
                "cutegen_nb; please report it with the kernel, or evaluate it on a GPU (--device cuda)."
            )
            raise EvaluatorError(message)

    def _profile(self) -> Profile | None:
        simulation = self.ground.simulation
        if simulation is None:
            return None
        launches = tuple(
            dataclasses.replace(
                launch,
                lines=tuple(
                    dataclasses.replace(line, file=FILE_NAME) if line.file == str(self.path) else line
                    for line in launch.lines
                ),
            )
            for launch in simulation.launches
        )
        return Profile(source=ProfileSource.SIMULATED, device=self.ground.architecture, launches=launches)

    def _modified(
        self, drawn: list[Any], given: list[Any], reference_inputs: list[Any]
    ) -> tuple[Outcome, str] | None:
        for position, (before, after, allowed) in enumerate(zip(drawn, given, reference_inputs, strict=True)):
            if not isinstance(before, torch.Tensor) or correctness.bits_equal(before, after):
                continue
            if not correctness.bits_equal(before, allowed):
                continue  # the reference writes into it as well
            message = f"Input {position} was changed by the candidate; the reference leaves it as it is."
            self.state.findings.insert(0, Finding(kind="input-modified", message=message))
            return Judged(verdict=Verdict.INPUT_MODIFIED), message
        return None

    def _contract(self, returned: Any, wanted: tuple[torch.Tensor, ...]) -> tuple[Outcome, str] | None:  # noqa: ANN401
        leaves = tree_leaves(returned)

        def ended(verdict: Verdict, kind: str, message: str) -> tuple[Outcome, str]:
            self.state.findings.insert(0, Finding(kind=kind, message=message))
            return Judged(verdict=verdict), message

        if len(leaves) != len(wanted):
            return ended(
                Verdict.WRONG_SHAPE,
                "wrong-number",
                f"forward returned {len(leaves)} outputs, the reference {len(wanted)}.",
            )
        for position, (got, want) in enumerate(zip(leaves, wanted, strict=True)):
            if type(got) not in {torch.Tensor, torch.nn.Parameter}:
                return ended(
                    Verdict.WRONG_DTYPE,
                    "wrong-type",
                    f"Output {position} is a {type(got).__name__}; a plain torch.Tensor is expected.",
                )
            if got.shape != want.shape:
                return ended(
                    Verdict.WRONG_SHAPE,
                    "wrong-shape",
                    f"Output {position} has shape {tuple(got.shape)}, the reference's {tuple(want.shape)}.",
                )
            if got.dtype != want.dtype or got.device.type != want.device.type:
                return ended(
                    Verdict.WRONG_DTYPE,
                    "wrong-dtype",
                    f"Output {position} is {got.dtype} on {got.device}; "
                    f"the reference gives {want.dtype} on {want.device}.",
                )
        return None

    def _values(
        self,
        drawn: list[Any],
        returned: Any,  # noqa: ANN401
        wanted: tuple[torch.Tensor, ...],
    ) -> tuple[Outcome, str] | None:
        state = self.state
        outputs = tree_leaves(returned)
        oracle = self._oracle(drawn, wanted)
        if len(state.gates) != len(wanted):
            state.gates = tuple(
                correctness.find_gate(want, truth, self.task.longest_sum)
                for want, truth in zip(wanted, oracle, strict=True)
            )
        tensors = tuple(item for item in drawn if isinstance(item, torch.Tensor))
        state.outputs = tuple(
            correctness.compare(index, got, want, truth, gate, tensors)
            for index, (got, want, truth, gate) in enumerate(
                zip(outputs, wanted, oracle, state.gates, strict=True)
            )
        )
        wrong = next((item for item in state.outputs if not item.matches), None)
        if wrong is None:
            return None
        message = correctness.sentence(wrong)
        state.findings.insert(0, Finding(kind="wrong-values", message=message))
        return Judged(verdict=Verdict.WRONG_VALUES), message

    def _oracle(self, drawn: list[Any], wanted: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor | None, ...]:
        """The reference in float64, or Nones with the reason noted."""
        try:
            model = copy.deepcopy(self.reference).double()
            doubled = [
                item.double() if isinstance(item, torch.Tensor) and item.is_floating_point() else item
                for item in _clone(drawn)
            ]
            outputs = _tensors(model(*doubled))
        except (RuntimeError, TypeError, ValueError, NotImplementedError, torch.OutOfMemoryError) as error:
            return self._no_oracle(f"{type(error).__name__}: {str(error)[:120]}", len(wanted))
        shapes, expected = ([tuple(item.shape) for item in side] for side in (outputs, wanted))
        if shapes != expected:
            return self._no_oracle(f"it gives shapes {shapes}, the reference {expected}", len(wanted))
        return outputs

    def _no_oracle(self, why: str, count: int) -> tuple[None, ...]:
        reason = f"float64 oracle: {why}"
        if reason not in self.state.not_run:
            self.state.not_run.append(reason)
        return (None,) * count

    def _again(self, drawn: list[Any], returned: Any) -> tuple[Outcome, str] | None:  # noqa: ANN401
        """The candidate once more on equal inputs, after the reference ran."""
        repeated, _ = self._forward(_clone(drawn))
        firsts, seconds = tree_leaves(returned), tree_leaves(repeated)
        for position, (one, two, gate) in enumerate(zip(firsts, seconds, self.state.gates, strict=True)):
            if correctness.bits_equal(one, two):
                continue
            if correctness.same(one, two, gate):
                self.state.findings.append(
                    Finding(
                        kind="not-bit-equal",
                        message=f"Output {position} differs in its last bits between two equal calls.",
                        severity=Severity.FLAG,
                    )
                )
                continue
            message = (
                f"Output {position} differs between two calls on equal inputs, by more than rounding: "
                "a race, memory read before it is written, or a result kept from an earlier call."
            )
            self.state.findings.insert(0, Finding(kind="nondeterministic", message=message))
            return Judged(verdict=Verdict.NONDETERMINISTIC), message
        return None


def _clone(drawn: list[Any]) -> list[Any]:
    return tree_map(lambda item: item.clone() if isinstance(item, torch.Tensor) else item, drawn)


def _tensors(returned: Any) -> tuple[torch.Tensor, ...]:  # noqa: ANN401
    """What a reference returned, flattened; numbers become tensors."""
    return tuple(
        leaf.detach() if isinstance(leaf, torch.Tensor) else torch.as_tensor(leaf)
        for leaf in tree_leaves(returned)
    )


def _elements(items: Any) -> int:  # noqa: ANN401
    total = 0
    for leaf in tree_leaves(items):
        if isinstance(leaf, torch.Tensor):
            total += leaf.numel()
        elif isinstance(leaf, OutputComparison):
            total += math.prod(leaf.shape)
    return total
