"""Prompts of a round from step, evidence and templates; pure.

`cutegen-nb prompt` prints these prompts, so that it shows exactly what would be sent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis, diagnose
from cutegen_nb.analysis.bottleneck.full_grid import ctas_at_full_size, is_scaled
from cutegen_nb.analysis.estimate.targets import EstimateTarget, target_of
from cutegen_nb.analysis.figures.quantity import duration, share
from cutegen_nb.analysis.hardware.occupancy import REGISTERS_PER_SM, launch_occupancy, limits_of
from cutegen_nb.analysis.hardware.roofline import ceilings, place
from cutegen_nb.analysis.hardware.zone import CountedFlops, zone
from cutegen_nb.analysis.history.fewest_flops import fewest_flops
from cutegen_nb.analysis.history.prediction import round_scores
from cutegen_nb.analysis.knowledge.gains import best_lines
from cutegen_nb.analysis.knowledge.record_words import told_lines
from cutegen_nb.analysis.problem.extents import named_extents
from cutegen_nb.analysis.tables.compiled_code_text import distinct, static_facts_text
from cutegen_nb.analysis.tables.counts import kernel_name
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.ports import Guide
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.profile import LaunchProfile, Profile
from cutegen_nb.core.round import Prompt, Round
from cutegen_nb.core.search.knowledge import Recall, no_knowledge
from cutegen_nb.core.session import PromptPart, Session
from cutegen_nb.core.strategy import Bound
from cutegen_nb.loop.knowledge_order import earlier_records
from cutegen_nb.loop.lineage import parent_evaluation
from cutegen_nb.loop.menu import parent_estimate
from cutegen_nb.loop.stages import Step
from cutegen_nb.prompting.context import ParentRevision, PromptContext, no_guide
from cutegen_nb.prompting.library import PromptLibrary
from cutegen_nb.prompting.render import first_prompt, optimise_prompt

_SCORED = 12
"""Number of newest rounds whose predictions are scored for a prompt; the memory summarises older rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSources:
    """Sources of the text of a prompt."""

    library: PromptLibrary
    """Prompt templates."""
    guide: Guide
    """Chapters of the CuTe DSL guide."""
    knowledge: Recall = no_knowledge
    """Knowledge base: records of like problems."""
    target: EstimateTarget | None = None
    """GPU that times are estimated for where none runs the candidates; None for `target_of` the session."""


def device_of_figures(session: Session, target: EstimateTarget | None = None) -> Device:
    """Return the device whose peaks, floors and multiprocessors a request states.

    Without a GPU times are estimated for `target`, so the figures are those of its data sheet. The kernel is
    compiled for the session's device all the same.
    """
    if session.device.kind is DeviceKind.GPU:
        return session.device
    return (target or target_of(session.device)).device


def background_of(session: Session, words: PromptSources, step: Step | None = None) -> PromptContext:
    """Collect the facts for all prompts of a round.

    Resources of the parent are included in every stage, its diagnosis where the step's stage shows it. Parts
    that the session's plan leaves out are empty.
    """
    evaluation = None
    if step is not None and step.parent is not None:
        evaluation = parent_evaluation(session, step.parent)
    without = session.plan.without
    counted = evaluation is not None and step is not None and session.plan.shows_counters(step.stage)
    with_roofs = PromptPart.ROOFLINE not in without
    fewest = fewest_flops(session)
    device = device_of_figures(session, words.target)
    where = zone(session.facts, device, fewest) if with_roofs else None
    return PromptContext(
        library=words.library,
        session=session,
        device=device,
        ceilings=ceiling_lines(session.facts, device, session.device.architecture) if with_roofs else (),
        floors=floor_lines(session.facts, device) if with_roofs else (),
        zone=where.text() if where else "",
        extents=named_extents(session.facts),
        diagnosis=limit_lines(session, step.parent, device, words.target)
        if counted and with_roofs and step is not None and step.parent is not None
        else (),
        resources=resource_lines(session.facts, device, evaluation) if evaluation else (),
        scores={item.number: round_scores(session, item) for item in session.rounds[-_SCORED:]},
        guide=no_guide if PromptPart.GUIDE in without else words.guide,
        knowledge=() if PromptPart.HISTORY in without else _knowledge_lines(session, words.knowledge, step),
    )


def diagnosis_of(
    facts: ProblemFacts, evaluation: Evaluation | None, device: Device, fewest: CountedFlops | None = None
) -> Diagnosis:
    """Diagnose a kernel; the source of the figures names their size where that is not the problem's own."""
    found = diagnose(facts, evaluation, device, fewest)
    profile = evaluation.profile if evaluation else None
    if profile is None or not profile.launches or not is_scaled(profile, facts):
        return found
    return replace(found, source=f"{found.source} at the smaller size that is run")


def limit_lines(
    session: Session, item: Round, device: Device, target: EstimateTarget | None = None
) -> tuple[str, ...]:
    """Say what limits a kernel: the bound at the full size, by the estimate, then causes by line.

    Counts come from a smaller size where the simulator runs one, and may name another bound. Strategies that
    would answer a cause are left out: an author is asked for one, and does not know the others' names.
    """
    found = diagnosis_of(session.facts, parent_evaluation(session, item), device)
    causes = tuple(replace(cause, strategies=()) for cause in found.causes)
    lines = replace(found, zone=None, causes=causes).text()
    estimated = parent_estimate(session, item, target)
    if estimated is None:
        return lines
    first = (
        f"At the full size, which counts, it is bound by {estimated.bound}: estimated "
        f"{duration(estimated.seconds)} on {estimated.target}. The counts below show the lines that cause it."
    )
    # The bound at the smaller size may differ and is left out.
    return (first, f"Counts ({found.source}): {found.because[:1].upper()}{found.because[1:]}", *lines[1:])


def _knowledge_lines(session: Session, recall: Recall, step: Step | None) -> tuple[str, ...]:
    """List what strategies did on like problems.

    A first kernel is told too which strategies together led to the fastest kernel.
    """
    records = earlier_records(session, recall)
    is_first = step is not None and step.parent is None
    lines = best_lines(records, session.facts, session.device, 1) if is_first else ()
    return told_lines(records, lines)


def resource_lines(facts: ProblemFacts, device: Device, evaluation: Evaluation) -> tuple[str, ...]:
    """List registers, spills and occupancy of each kernel and its grid at full size; empty without counts.

    A multiprocessor may hold eight CTAs of a kernel that launches sixteen in all. The grid is the sampled one
    where the candidate was called at full size, else it follows from the one that ran. Occupancy is that of
    `device`, whatever architecture the kernel was compiled for.
    """
    profile, sample, sms = evaluation.profile, evaluation.full_size, device.sm_count
    if profile is None:
        return ()
    lines = list(static_facts_text(_on_architecture(profile, device)))
    if sample is not None and sample.launches:
        full = replace(profile, launches=tuple(one.profile for one in sample.launches))
        grids = [(launch, float(math.prod(launch.grid))) for launch in distinct(full)]
        about = ""
    else:
        grids = [(launch, ctas_at_full_size(launch, profile, facts)) for launch in distinct(profile)]
        about = "about " if is_scaled(profile, facts) else ""
    for launch, count in grids if sms else ():
        ctas = max(1, round(count))
        lines.append(
            f"{kernel_name(launch)} at the full size: {about}{ctas:,} CTA{'s' if ctas != 1 else ''} "
            f"for {sms} multiprocessors{_waves(launch, ctas, device)}."
        )
    return tuple(lines)


def _on_architecture(profile: Profile, device: Device) -> Profile:
    """Profile whose launches have their occupancy on a device's architecture."""
    if limits_of(device.architecture) is None:
        return profile
    return replace(profile, launches=tuple(_moved(launch, device) for launch in profile.launches))


def _moved(launch: LaunchProfile, device: Device) -> LaunchProfile:
    resources = launch.resources
    return replace(
        launch,
        resources=replace(resources, architecture=device.architecture) if resources else None,
    )


def _waves(launch: LaunchProfile, ctas: int, device: Device) -> str:
    """Say how many multiprocessors are idle, or the waves of the grid and the fullness of the last one.

    Waves = CTAs ÷ (CTAs that fit a multiprocessor × multiprocessors).
    """
    sms = device.sm_count
    if ctas < sms:
        return f": {sms - ctas} idle"
    held = launch_occupancy(_moved(launch, device))
    if held is None or not held.active_ctas:
        return ""
    at_once = held.active_ctas * sms
    waves = math.ceil(ctas / at_once)
    last = (ctas - (waves - 1) * at_once) / at_once
    said = f", {at_once:,} of them at once: {ctas / at_once:.2f} waves, the last one {share(last)} full"
    if ctas > at_once:
        return said
    return f", {at_once:,} of them at once: one wave, {share(last)} full"


def ceiling_lines(facts: ProblemFacts, device: Device, compiled_for: str = "") -> tuple[str, ...]:
    """List the peaks that count at the problem's precision, and the limits of one multiprocessor.

    A CTA has no more shared memory than the architecture that it is compiled for allows.
    """
    peaks = [
        f"{one.pipe}: {one.flops_per_s / 1e12:.4g} TFLOP/s dense{f' ({one.note})' if one.note else ''}"
        for one in ceilings(facts, device)
    ]
    limits = limits_of(device.architecture)
    if limits is None:
        return tuple(peaks)
    compiled = limits_of(compiled_for) or limits
    fewest = min(limits.smem_per_cta_bytes, compiled.smem_per_cta_bytes)
    limited = f" compiled for {compiled_for}" if fewest < limits.smem_per_cta_bytes else ""
    room = (
        f"a multiprocessor: {REGISTERS_PER_SM:,} registers, {limits.warps} warps, "
        f"{limits.smem_bytes // 1024} KiB of shared memory, {fewest // 1024} KiB for a CTA{limited}"
    )
    return (*peaks, room)


def floor_lines(facts: ProblemFacts, device: Device) -> tuple[str, ...]:
    """Say what no kernel can undercut, and what an identity of algebra can.

    Inputs and outputs must cross DRAM whatever the algebra. The FLOPs are those of the reference's graph, of
    which an identity may need a fraction: a row sum of a product is a product with the summed weights.
    """
    roof = place(facts, device)
    peaks = ceilings(facts, device)
    lines = []
    memory_ms = (
        1e3 * facts.full.least_bytes / device.bandwidth_bytes_per_s if device.bandwidth_bytes_per_s else 0
    )
    if memory_ms:
        lines.append(f"no kernel can take less than {duration(memory_ms / 1e3)}: these bytes cross DRAM once")
    if roof.bound is Bound.COMPUTE and peaks:
        lines.append(
            f"the reference's own operations take at least {roof.floor_ms:.4g} ms on {peaks[-1].pipe}, so at "
            "full size compute decides; an identity that needs fewer operations may go below that"
        )
    elif lines:
        lines.append("at full size memory decides: the reference's operations take less time than its bytes")
    return tuple(lines)


def prompt_of_step(session: Session, words: PromptSources, step: Step, steering: str) -> Prompt:
    """Build the prompt of the next round; `steering` is the person's request."""
    background = replace(background_of(session, words, step), steering=steering)
    if step.parent is None or step.strategy is None:
        return first_prompt(background)
    candidate, evaluation = step.parent.candidate, parent_evaluation(session, step.parent)
    assert candidate is not None
    assert evaluation is not None
    given = ParentRevision(revision=f"r{step.parent.number}", candidate=candidate, evaluation=evaluation)
    return optimise_prompt(
        background, given, step.strategy, stage=step.stage, because=step.because, in_slot=step.in_slot
    )
