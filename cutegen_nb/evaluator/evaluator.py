"""Evaluator: verdicts on candidates for the loop. Runs in the person's process and imports no torch."""

from __future__ import annotations

import dataclasses
import functools
import secrets
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from cutegen_nb.analysis.problem.exactness import integers_stay_integers
from cutegen_nb.analysis.problem.workload import longest_sum
from cutegen_nb.analysis.source.screen import screen
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.evaluation import COMPILED, CheckResult, CheckState, Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.profile import Profile
from cutegen_nb.evaluator.catalog.work import SECOND_PROCESS
from cutegen_nb.evaluator.evaluation_case import EvaluationCase
from cutegen_nb.evaluator.full_size.sampling import EarlySample, FullSizeSampler
from cutegen_nb.evaluator.isolated import early_checks, exchange
from cutegen_nb.evaluator.isolated.early_checks import EarlyChecks
from cutegen_nb.evaluator.problem_study import KnownProblem, ProblemCache, ProblemStudy
from cutegen_nb.evaluator.process.evaluation_request import EvaluationRequest
from cutegen_nb.evaluator.process.exit_report import (
    LOG_CHARACTERS,
    STARTING,
    leftovers,
    raise_reported_error,
    verdict_without_result,
)
from cutegen_nb.evaluator.process.pool import Workers
from cutegen_nb.evaluator.process.stage_times import Stages
from cutegen_nb.evaluator.process.transcript import RecordHandler
from cutegen_nb.evaluator.process.worker_handle import ProcessLimits, Reply, WorkerRun
from cutegen_nb.evaluator.timing.compile_cache import CompileCache
from cutegen_nb.evaluator.tools import ncu, sanitizer

if TYPE_CHECKING:
    from cutegen_nb.evaluator.worker.remote_call import RemoteCall


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
        baselines: tuple[str, ...] = ("eager", "torch.compile"),
        screening: bool = True,
        spare: bool | None = None,
        gpu: str = "",
        cache: ProblemCache | None = None,
    ) -> None:
        """Store the settings; no device is chosen and no process started yet.

        Args:
            device: ``auto`` (a GPU where there is one), ``cuda`` or ``simulator``.
            architecture: Architecture that the simulator models; a GPU states its own.
            deadline_s: Wall time in seconds for tier A, compilation included; by default 60 s on the
                simulator and 180 s on a GPU, where baselines are compiled too. Higher tiers get more.
            memory_bytes: Address space that a worker may add on the simulator. On a GPU the limit is on
                resident memory: this, or half of the machine's memory where that is more.
            seeds: Number of input seeds at tier A; twice as many above. The default depends on device, tier
                and size (`SEEDS_ON_GPU`, `LEAN_SEEDS`, `SEEDS_ON_SIMULATOR`).
            baselines: Baselines that a GPU's times are compared with: ``eager``, ``torch.compile``.
            screening: True to read the source before it runs. What a run shows does not depend on it.
            spare: True to keep a warmed-up worker waiting for the next candidate; by default on a GPU, where
                that saves the time of a CUDA context and a process's first compilation.
            gpu: UUID of the GPU that every process is bound to; empty for the one that CUDA takes first.
            cache: Facts of problems, shared with other evaluators of this host; by default its own.
        """
        self._workers = Workers(
            device=device,
            architecture=architecture,
            deadline_s=deadline_s,
            memory_bytes=memory_bytes,
            spare=spare,
            gpu=gpu,
        )
        self._seeds = seeds
        self._baselines = baselines
        self._screening = screening
        self._cache = cache or ProblemCache()
        self._counting = ncu.CounterCollector()
        self._sampler = FullSizeSampler(self._workers)
        self._compiled = CompileCache(
            self._workers, wanted=COMPILED in baselines, folders=self._cache.folders
        )
        self._study = ProblemStudy(self._workers, self._cache, compiled=self._compiled)

    async def device(self) -> Device:
        """Device that candidates run on; a GPU's bandwidth is measured once. Raises DeviceUnavailable."""
        return await self._workers.device()

    async def close(self) -> None:
        """End every process that the evaluator started."""
        await self._compiled.close()
        await self._workers.close()

    async def facts(self, problem: Problem, progress: Progress) -> ProblemFacts:
        """Trace a problem, once per digest. Raises ProblemError when the problem cannot be used."""
        return (await self.known(problem, progress)).facts

    async def known(self, problem: Problem, progress: Progress) -> KnownProblem:
        """Trace and admit a problem, once per digest. Raises ProblemError when it cannot be used."""
        with self._workers.occupied():
            return await self._study.known(problem, progress)

    async def evaluate(  # noqa: PLR0913 - one argument each of what may be asked
        self,
        problem: Problem,
        candidate: Candidate,
        progress: Progress,
        tier: Tier = Tier.A,
        *,
        rival: Candidate | None = None,
        only_if_faster: bool = False,
        profile: bool = False,
    ) -> Evaluation:
        """Judge a candidate. Its faults become verdicts; raises EvaluatorError for a fault of the evaluator.

        On a GPU, `rival`, a candidate that passed before, is timed beside this one in the same turns. With
        `only_if_faster`, a candidate that is no faster is judged at tier A alone, whatever `tier` says. With
        `profile`, a passing candidate is profiled by Nsight Compute; where that fails, a flag gives the
        reason, once. Raises ProblemError when the reference itself cannot be run.
        """
        started, stages = time.monotonic(), Stages(progress)
        device = await self.device()
        findings = screen(candidate.source, problem.library) if self._screening else ()
        decisive = next((item for item in findings if item.severity is Severity.DECIDES), None)
        if decisive is not None:
            outcome = Judged(verdict=Verdict.SCREENED_OUT)
            found = Evaluation(outcome=outcome, summary=decisive.message, device=device.label, tier=tier)
        else:
            with self._workers.occupied():
                known = await self._study.known(problem, stages)
                await self._compiled.ready(problem, stages)
                case = EvaluationCase(
                    problem=problem,
                    candidate=candidate,
                    known=known,
                    device=device,
                    tier=tier,
                    rival=rival,
                    only_if_faster=only_if_faster,
                    progress=stages,
                )
                found = await self._judged(case, profile=profile)
        return dataclasses.replace(
            found,
            findings=(*found.findings, *findings),
            duration_s=time.monotonic() - started,
            stage_seconds=stages.seconds(),
            candidate_digest=candidate.digest,
            problem_digest=problem.digest,
        )

    async def _judged(self, case: EvaluationCase, *, profile: bool) -> Evaluation:
        """Run all checks of the tier in order; later ones run only on a candidate that passed so far."""
        early = self._early_checks(case) if case.tier.includes(Tier.B) else None
        sample = EarlySample(self._sampler, case.problem, case.facts, case.candidate)
        try:
            judge = functools.partial(self._judged_in_child, case, sample=sample if case.simulated else None)
            found = await (judge() if early is None else early.beside(judge))
            if case.spares(found):
                return found
            found = dataclasses.replace(found, tier=case.tier)
            if early is not None and found.passed:
                found = await early.added_to(found)
            if case.tier is Tier.C and found.passed:
                found = await self._once_more(found, case)
            if found.passed and case.simulated:
                found = dataclasses.replace(found, full_size=await sample.result(case.progress))
        finally:
            await sample.close()
            if early is not None:
                await early.close()
            (await self._workers.forks()).keep_spare()
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
        detail: ncu.Detail = ncu.Detail.TUNING,
    ) -> Profile:
        """Read a GPU's counters of one call of a passing candidate. Raises NoCounters with the reason."""
        await self._compiled.ready(problem, progress)
        order = await self._counting_order(problem, candidate)
        return await ncu.collect_counters(dataclasses.replace(order, detail=detail), progress)

    async def _counting_order(self, problem: Problem, candidate: Candidate) -> ncu.ProfileRequest:
        device = await self.device()
        return ncu.ProfileRequest(
            problem=problem,
            candidate=candidate,
            confine_files=self._workers.confine_files,
            resident_bytes=self._workers.resident_limit(),
            driver=device.driver,
            variables=self._workers.variables(device),
        )

    async def serve(self, problem: Problem, candidate: Candidate, call: RemoteCall) -> Any:
        """Run a candidate once on the caller's own tensors; return the outputs of its ``forward``.

        Raises EvaluatorError with the candidate's fault when it did not run to its end, and ProblemError.
        """
        from cutegen_nb.evaluator.worker import remote_call  # noqa: PLC0415 - imports torch, as whoever has tensors did

        server, limits, heard = (
            await self._workers.forks(),
            await self._workers.limits(),
            RecordHandler(lambda _: None),
        )
        request = {
            "kind": "call",
            "problem": encode(problem),
            "source": candidate.source,
            "digest": candidate.digest,
        }
        files = functools.partial(remote_call.pack, call)
        run = await self._workers.run(request, limits, heard, files=files, keep=True)
        try:
            raise_reported_error(heard)
            if heard.result is None or run.malformed or run.end is None:
                fault = verdict_without_result(run, limits, heard.stage or "running", "")
                raise EvaluatorError(f"The kernel was not run to its end. {fault.label}: {fault.summary}")
            if heard.result["kind"] == "refused":
                raise EvaluatorError(f"The kernel was not run to its end. {heard.result['message']}")
            return remote_call.unpack_outputs(heard.result, server.folder(run.folder), call.arguments)
        finally:
            server.discard(run.folder)
            server.keep_spare()

    def _early_checks(self, case: EvaluationCase) -> EarlyChecks:
        """Prepare the checks above tier A that run in processes of their own."""
        order = exchange.IsolatedRequest(
            problem=case.problem,
            candidate=case.candidate,
            workload=case.workload,
            longest_sum=longest_sum(case.workload.graph),
            gates=encode(case.known.tolerances),
            added_inputs=case.added_inputs,
        )
        at_once = early_checks.has_room(case.device, case.workload.least_bytes)
        return early_checks.prepared(
            order, self._workers, case.progress, at_once=at_once, simulated=case.simulated
        )

    async def _once_more(self, passed: Evaluation, case: EvaluationCase) -> Evaluation:
        """Judge a passing candidate in a second process with other seeds; a failure there decides."""
        case.progress("judging once more in a second process")
        alone = dataclasses.replace(case, tier=Tier.A, rival=None, only_if_faster=False)
        second = await self._judged_in_child(alone)
        state = CheckState.RAN if second.passed else CheckState.FOUND
        result = CheckResult(
            name=SECOND_PROCESS.name, tier=SECOND_PROCESS.tier, state=state, note=second.summary
        )
        checks = tuple(item for item in passed.checks if item.name != SECOND_PROCESS.name)
        kept = passed if second.passed else second
        return dataclasses.replace(kept, checks=(*checks, result), timing=passed.timing, tier=case.tier)

    async def _under_tools(self, passed: Evaluation, case: EvaluationCase) -> Evaluation:
        """Run a passing candidate under compute-sanitizer; the simulator makes these checks by itself."""
        facts = case.facts
        order = sanitizer.SanitizerRequest(
            problem=case.problem,
            candidate=case.candidate,
            sizes=(facts.scaled, facts.full) if facts.scaled.rewrites else (facts.full,),
            confine_files=self._workers.confine_files,
            resident_bytes=self._workers.resident_limit(),
            variables=self._workers.variables(case.device),
        )
        return await sanitizer.through_tools(passed, order, case.progress)

    async def _judged_in_child(
        self, case: EvaluationCase, early: EarlyChecks | None = None, *, sample: EarlySample | None = None
    ) -> Evaluation:
        facts = case.facts
        limits = await self._workers.limits(1.5 * case.higher_tiers_s)
        count = case.seed_count(self._seeds)
        heard = RecordHandler(case.progress, [secrets.randbits(31) for _ in range(count)])

        def answered(record: dict[str, Any]) -> Reply | Awaitable[Reply]:
            if record.get("kind") == "imported" and not heard.inside:
                if early is not None:
                    early.begin()
                if sample is not None:
                    sample.begin()
            if record.get("kind") == "alone" and not heard.inside:
                return _alone(early)
            if record.get("kind") == "result" and not heard.inside:
                case.progress("ending the process")
            return heard(record)

        try:
            request = EvaluationRequest(
                problem=case.problem,
                rewrites=case.workload.rewrites,
                source=case.candidate.source,
                digest=case.candidate.digest,
                tolerances=case.known.tolerances,
                baselines=self._baselines,
                longest_sum=longest_sum(case.workload.graph),
                least_bytes=facts.full.least_bytes,
                flops=facts.full.flops,
                peak_flops=self._workers.peak_flops,
                noise_fraction=self._cache.noise_fraction(case.problem),
                deadline_s=limits.deadline_s,
                tier=case.tier,
                higher_tiers_s=case.higher_tiers_s,
                exact=integers_stay_integers(facts.full.graph),
                added_inputs=case.added_inputs,
                only_if_faster=case.only_if_faster,
                rival_source=case.rival.source if case.rival else "",
            )
            files = functools.partial(self._compiled.copy, case.problem)
            asked = {"kind": "evaluate", "request": encode(request)}
            run = await self._workers.run(asked, limits, heard, answer=answered, files=files)
        finally:
            # Only now: two processes at work on one GPU would disturb each other's times.
            (await self._workers.forks()).keep_spare()
        return self._concluded(case.problem, run, limits, heard, case.device.label)

    def _concluded(
        self, problem: Problem, run: WorkerRun, limits: ProcessLimits, heard: RecordHandler, name: str
    ) -> Evaluation:
        if heard.forged:
            run = dataclasses.replace(run, malformed=heard.forged)
        # Without its supervisor's report a worker may still run, and nothing has kept its deadline.
        if heard.result is None or run.malformed or run.end is None:
            ended = verdict_without_result(run, limits, heard.stage or STARTING, name)
            return dataclasses.replace(ended, findings=(*ended.findings, *heard.reached))
        raise_reported_error(heard)
        try:
            evaluation = _consistent(decode(Evaluation, heard.result["evaluation"]))
        except (KeyError, TypeError, ValueError) as error:
            broken = dataclasses.replace(run, malformed=f"a result that cannot be read ({error})")
            return verdict_without_result(broken, limits, heard.stage or STARTING, name)
        self._cache.keep_noise(problem, evaluation)
        log = str(run.end["log"]) if run.end else ""
        return dataclasses.replace(
            evaluation,
            log=log[-LOG_CHARACTERS:],
            findings=(*evaluation.findings, *heard.reached, *leftovers(run)),
        )


async def _alone(early: EarlyChecks | None) -> Reply:
    """Answer a candidate's process once no check of the same evaluation runs beside it."""
    if early is not None:
        await early.settle()
    return {}


def _consistent(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation. Raises ValueError for a PASSED that its own findings contradict."""
    if evaluation.passed and any(item.severity is Severity.DECIDES for item in evaluation.findings):
        raise ValueError("PASSED beside a finding that decides")
    return evaluation
