"""The evaluator: what the loop asks for verdicts. Runs in the person's process and imports no torch."""

from __future__ import annotations

import dataclasses
import functools
import secrets
import time
from typing import TYPE_CHECKING, Any

from cutegen_nb.analysis.exactness import integers_stay_integers
from cutegen_nb.analysis.screen import screen
from cutegen_nb.analysis.workload import longest_sum
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import (
    CheckResult,
    CheckState,
    Evaluation,
    Judged,
    Severity,
    Tier,
    Verdict,
)
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Admission, Problem, ProblemFacts, Workload
from cutegen_nb.core.profile import Profile
from cutegen_nb.gpu import nsight, outside, sanitizing
from cutegen_nb.gpu.checks.registry.work import SECOND_PROCESS
from cutegen_nb.gpu.endings import LOG_CHARACTERS, STARTING, leftovers, raise_ours, unusable, without_result
from cutegen_nb.gpu.heard import Heard
from cutegen_nb.gpu.waiting import Limits, Run
from cutegen_nb.gpu.workers import FACTS_DEADLINE_S, Workers

if TYPE_CHECKING:
    from cutegen_nb.gpu.serving import Call

SEEDS_ON_GPU = 5
SEEDS_ON_SIMULATOR = 3
"""Fewer on the simulator, where a run of a kernel takes seconds and not microseconds."""
_LARGEST_ADMITTED_BYTES = 64 << 20
CLOSER_ON_GPU_S = {Tier.A: 0.0, Tier.B: 60.0, Tier.C: 120.0}
CLOSER_ON_SIMULATOR_S = {Tier.A: 0.0, Tier.B: 15.0, Tier.C: 40.0}
"""What the checks above tier A may take together; the deadline is as much later, and half again."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """One candidate that is judged."""

    problem: Problem
    candidate: Candidate
    facts: ProblemFacts
    """Of the problem."""
    device: Device
    """What it runs on."""
    tier: Tier
    """How closely it is looked at."""
    rival: Candidate | None
    """What it is timed beside; None for nothing."""
    progress: Progress
    """Told what is being done now."""

    @property
    def simulated(self) -> bool:
        """Whether there is no GPU."""
        return self.device.kind is DeviceKind.SIMULATOR

    @property
    def workload(self) -> Workload:
        """At the size that runs here."""
        return self.facts.scaled if self.simulated else self.facts.full

    @property
    def added_inputs(self) -> tuple[str, ...]:
        """What the problem's own inputs needed beside them to be admitted."""
        return self.facts.admission.added_inputs if self.facts.admission else ()


class KernelEvaluator:
    """Implements ``core.ports.Evaluator`` with forked workers, on a GPU or on the simulator."""

    def __init__(  # noqa: PLR0913 - settings, each with a default
        self,
        *,
        device: str = "auto",
        architecture: str | None = None,
        deadline_s: float | None = None,
        memory_bytes: int = 4 << 30,
        seeds: int | None = None,
        baselines: tuple[str, ...] = ("eager",),
        screening: bool = True,
        spare: bool | None = None,
    ) -> None:
        """Choose nothing and start nothing yet.

        Args:
            device: ``auto`` (a GPU where there is one), ``cuda`` or ``simulator``.
            architecture: What the simulator stands for; a GPU states its own.
            deadline_s: Wall time for one evaluation, compilation included; by default 60 s on the simulator
                and 180 s on a GPU, where baselines are compiled too.
            memory_bytes: Address space a worker may add on the simulator; resident memory on a GPU host.
            seeds: Input seeds for each evaluation; by default 3 on the simulator and 5 on a GPU.
            baselines: What a GPU's times are compared with: ``eager``, ``torch.compile``.
            screening: Whether the source is read before it runs. What a run shows does not depend on it.
            spare: Whether a worker waits, warmed up, for the next candidate; by default on a GPU, where that
                saves what a CUDA context and a process's first compilation take.
        """
        self._workers = Workers(
            device=device,
            architecture=architecture,
            deadline_s=deadline_s,
            memory_bytes=memory_bytes,
            spare=spare,
        )
        self._seeds = seeds
        self._baselines = baselines
        self._screening = screening
        self._facts: dict[str, ProblemFacts] = {}
        self._gates: dict[str, list[dict[str, Any]]] = {}
        self._noise: dict[str, float] = {}
        self._counting = nsight.Counting()

    async def device(self) -> Device:
        """What candidates run on; a GPU's bandwidth is measured once. Raises DeviceUnavailable."""
        return await self._workers.device()

    async def close(self) -> None:
        """End every process it started."""
        await self._workers.close()

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:
        """Trace a problem, once a digest. Raises ProblemError when it cannot be used."""
        known = self._facts.get(problem.digest)
        if known is not None:
            return known
        limits = Limits(deadline_s=FACTS_DEADLINE_S, address_space_bytes=await self._workers.address_space())
        heard = Heard(progress)
        run = await self._workers.run(
            {"kind": "facts", "problem": encode(problem)}, limits, heard, spare=False
        )
        if heard.result is None or heard.result.get("kind") != "facts":
            raise_ours(heard)
            raise unusable(run, limits, heard.stage)
        facts = decode(ProblemFacts, heard.result["facts"])
        facts = dataclasses.replace(facts, admission=await self._admitted(problem, facts, progress))
        self._facts[problem.digest] = facts
        return facts

    async def _admitted(self, problem: Problem, facts: ProblemFacts, progress: Progress) -> Admission:
        """Try wrong answers, and keep the gates: both where no candidate can reach."""
        simulated = (await self._workers.choice()).kind is DeviceKind.SIMULATOR
        workload = facts.scaled if simulated else facts.full
        if simulated and workload.least_bytes > _LARGEST_ADMITTED_BYTES:
            return Admission(not_tried="the problem is too large for this machine")
        request = {
            "kind": "admit",
            "problem": encode(problem),
            "rewrites": encode(workload.rewrites),
            "longest_sum": longest_sum(workload.graph),
        }
        heard = Heard(progress)
        limits = await self._workers.limits()
        (await self._workers.forks()).keep_spare()  # gets ready for the first candidate meanwhile
        run = await self._workers.run(request, limits, heard, spare=False)
        result = heard.result
        if result is None or run.malformed:
            return Admission(not_tried=without_result(run, limits, heard.stage or STARTING, "").summary)
        if result.get("kind") != "admitted":
            return Admission(not_tried=str(result.get("message", "it failed"))[:300])
        self._gates[problem.digest] = list(result["gates"])
        return decode(Admission, result["admission"])

    async def evaluate(  # noqa: PLR0913 - one argument each of what may be asked
        self,
        problem: Problem,
        candidate: Candidate,
        progress: Progress,
        tier: Tier = Tier.A,
        *,
        rival: Candidate | None = None,
        profile: bool = False,
    ) -> Evaluation:
        """Judge a candidate. Every fault of the candidate is a verdict; raises EvaluatorError for ours.

        On a GPU `rival`, a candidate that passed before, is timed beside it in the same turns, and with
        `profile` one that passes is counted by Nsight Compute; where it cannot be, a flag says why, once.
        Raises ProblemError when the reference itself cannot be run.
        """
        started = time.monotonic()
        device = await self.device()
        findings = screen(candidate.source) if self._screening else ()
        decisive = next((item for item in findings if item.severity is Severity.DECIDES), None)
        if decisive is not None:
            outcome = Judged(verdict=Verdict.SCREENED_OUT)
            found = Evaluation(outcome=outcome, summary=decisive.message, device=_reported_name(device))
        else:
            case = _Case(
                problem=problem,
                candidate=candidate,
                facts=await self.facts(problem, progress),
                device=device,
                tier=tier,
                rival=rival,
                progress=progress,
            )
            found = await self._judged(case, profile=profile)
        return dataclasses.replace(
            found,
            findings=(*found.findings, *findings),
            duration_s=time.monotonic() - started,
            tier=tier,
            candidate_digest=candidate.digest,
            problem_digest=problem.digest,
        )

    async def _judged(self, case: _Case, *, profile: bool) -> Evaluation:
        """By all that the tier asks for; what comes later looks at a candidate that passed so far."""
        found = await self._judged_in_child(case)
        if case.tier.includes(Tier.B) and found.passed:
            found = await self._outside(found, case)
        if case.tier is Tier.C and found.passed:
            found = await self._once_more(found, case)
        if case.tier is Tier.C and found.passed and not case.simulated:
            found = await self._under_tools(found, case)
        if profile and found.passed and not case.simulated:
            order = await self._counting_order(case.problem, case.candidate)
            found = await self._counting.with_counters(found, order, case.progress)
        return found

    async def count(
        self,
        problem: Problem,
        candidate: Candidate,
        progress: Progress,
        detail: nsight.Detail = nsight.Detail.TUNING,
    ) -> Profile:
        """A GPU's counters of one call of a candidate that passed. Raises NoCounters, which says why."""
        order = await self._counting_order(problem, candidate)
        return await nsight.counted(dataclasses.replace(order, detail=detail), progress)

    async def _counting_order(self, problem: Problem, candidate: Candidate) -> nsight.Order:
        device = await self.device()
        return nsight.Order(
            problem=problem,
            candidate=candidate,
            confine_files=self._workers.confine_files,
            resident_bytes=self._workers.resident_limit(),
            driver=device.driver,
        )

    async def serve(self, problem: Problem, candidate: Candidate, call: Call) -> Any:
        """Run a candidate once on the caller's own tensors; what its ``forward`` gives.

        Raises EvaluatorError with the candidate's fault when it did not run to its end, and ProblemError.
        """
        from cutegen_nb.gpu import serving  # noqa: PLC0415 - imports torch, as whoever has tensors did

        server, limits, heard = (
            await self._workers.forks(),
            await self._workers.limits(),
            Heard(lambda _: None),
        )
        request = {
            "kind": "call",
            "problem": encode(problem),
            "source": candidate.source,
            "digest": candidate.digest,
        }
        files = functools.partial(serving.pack, call)
        run = await self._workers.run(request, limits, heard, files=files, keep=True)
        try:
            raise_ours(heard)
            if heard.result is None or run.malformed or run.end is None:
                fault = without_result(run, limits, heard.stage or "running", "")
                raise EvaluatorError(f"The kernel was not run to its end. {fault.label}: {fault.summary}")
            if heard.result["kind"] == "refused":
                raise EvaluatorError(f"The kernel was not run to its end. {heard.result['message']}")
            return serving.unpack_outputs(heard.result, server.folder(run.folder), call.arguments)
        finally:
            server.discard(run.folder)
            server.keep_spare()

    async def _outside(self, passed: Evaluation, case: _Case) -> Evaluation:
        """A passing candidate's values judged where it cannot reach the judge."""
        order = outside.Order(
            problem=case.problem,
            candidate=case.candidate,
            workload=case.workload,
            longest_sum=longest_sum(case.workload.graph),
            gates=self._gates.get(case.problem.digest, []),
            added_inputs=case.added_inputs,
        )
        return await outside.judged_outside(passed, order, self._workers, case.progress)

    async def _once_more(self, passed: Evaluation, case: _Case) -> Evaluation:
        """A passing candidate in a second process with other seeds; what failed there decides."""
        case.progress("judging once more in a second process")
        second = await self._judged_in_child(dataclasses.replace(case, tier=Tier.A, rival=None))
        state = CheckState.RAN if second.passed else CheckState.FOUND
        result = CheckResult(
            name=SECOND_PROCESS.name, tier=SECOND_PROCESS.tier, state=state, note=second.summary
        )
        checks = tuple(item for item in passed.checks if item.name != SECOND_PROCESS.name)
        kept = passed if second.passed else second
        return dataclasses.replace(kept, checks=(*checks, result), timing=passed.timing)

    async def _under_tools(self, passed: Evaluation, case: _Case) -> Evaluation:
        """A passing candidate under compute-sanitizer; the simulator looks for the same by itself."""
        facts = case.facts
        order = sanitizing.Order(
            problem=case.problem,
            candidate=case.candidate,
            sizes=(facts.scaled, facts.full) if facts.scaled.rewrites else (facts.full,),
            confine_files=self._workers.confine_files,
            resident_bytes=self._workers.resident_limit(),
        )
        return await sanitizing.through_tools(passed, order, case.progress)

    async def _judged_in_child(self, case: _Case) -> Evaluation:
        facts, rival = case.facts, case.rival
        closer_s = (CLOSER_ON_SIMULATOR_S if case.simulated else CLOSER_ON_GPU_S)[case.tier]
        limits = await self._workers.limits(1.5 * closer_s)
        count = self._seeds or (SEEDS_ON_SIMULATOR if case.simulated else SEEDS_ON_GPU)
        count = count if case.tier is Tier.A else 2 * count
        heard = Heard(case.progress, [secrets.randbits(31) for _ in range(count)])
        try:
            request = {
                "kind": "evaluate",
                "problem": encode(case.problem),
                "source": case.candidate.source,
                "digest": case.candidate.digest,
                "rewrites": encode(case.workload.rewrites),
                "gates": self._gates.get(case.problem.digest, []),
                "baselines": list(self._baselines),
                "longest_sum": longest_sum(case.workload.graph),
                "least_bytes": facts.full.least_bytes,
                "flops": facts.full.flops,
                "peak_flops": self._workers.peak_flops,
                "noise_fraction": self._noise.get(case.problem.digest),
                "deadline_s": limits.deadline_s,
                "tier": case.tier.value,
                "closer_s": closer_s,
                "exact": integers_stay_integers(facts.full.graph),
                "added_inputs": list(case.added_inputs),
                "rival": {"source": rival.source, "digest": rival.digest} if rival else None,
            }
            run = await self._workers.run(request, limits, heard)
        finally:
            # Not before: two processes at work on one GPU would spoil each other's times.
            (await self._workers.forks()).keep_spare()
        return self._concluded(case.problem, run, limits, heard, _reported_name(case.device))

    def _concluded(self, problem: Problem, run: Run, limits: Limits, heard: Heard, name: str) -> Evaluation:
        if heard.forged:
            run = dataclasses.replace(run, malformed=heard.forged)
        # Without its warden's word a worker may still run, and its deadline was nobody's to keep.
        if heard.result is None or run.malformed or run.end is None:
            ended = without_result(run, limits, heard.stage or STARTING, name)
            return dataclasses.replace(ended, findings=(*ended.findings, *heard.reached))
        raise_ours(heard)
        try:
            evaluation = _consistent(decode(Evaluation, heard.result["evaluation"]))
        except (KeyError, TypeError, ValueError) as error:
            broken = dataclasses.replace(run, malformed=f"a result that cannot be read ({error})")
            return without_result(broken, limits, heard.stage or STARTING, name)
        if evaluation.timing is not None and evaluation.timing.noise_fraction is not None:
            self._noise.setdefault(problem.digest, evaluation.timing.noise_fraction)
        log = str(run.end["log"]) if run.end else ""
        return dataclasses.replace(
            evaluation,
            log=log[-LOG_CHARACTERS:],
            findings=(*evaluation.findings, *heard.reached, *leftovers(run)),
        )


def _consistent(evaluation: Evaluation) -> Evaluation:
    """The evaluation itself. Raises ValueError for a PASSED that its own findings contradict."""
    if evaluation.passed and any(item.severity is Severity.DECIDES for item in evaluation.findings):
        raise ValueError("PASSED beside a finding that decides")
    return evaluation


def _reported_name(device: Device) -> str:
    if device.kind is DeviceKind.SIMULATOR:
        return f"simulator ({device.architecture})"
    return device.name
