"""Evaluation of a candidate as text for the next prompt, at the stage's level of detail."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from cutegen_nb.core.candidate import FILE_NAME, Candidate
from cutegen_nb.core.estimate import FullSizeSample
from cutegen_nb.core.evaluation import Evaluation, OutputComparison
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.profile import Counters, Profile, ProfileSource, function_name, is_own
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.timing import Timing
from cutegen_nb.prompting.costly import costly_text
from cutegen_nb.prompting.diagnostics import excerpt, reduced_log
from cutegen_nb.prompting.wrong import wrong_text

_FINDINGS = 8
"""Largest number of findings in a prompt."""
_WITH_LINES = {Stage.PROFILE, Stage.TUNE}
"""Stages whose prompts show counts by launch and line."""


def evaluation_text(evaluation: Evaluation, candidate: Candidate, stage: Stage | None = None) -> str:
    """Format verdict, findings with the candidate's lines, errors against the reference, counts and times.

    `stage` limits the counters. Before PROFILE only the totals appear that decide on a simulated kernel; from
    PROFILE on each launch and its costliest lines. None shows everything.
    """
    parts = [f"{evaluation.verdict_words} on {evaluation.device}. {evaluation.summary}"]
    told = evaluation.summary
    parts += [_finding_text(finding, candidate.source, told) for finding in _ordered(evaluation)[:_FINDINGS]]
    if evaluation.correctness and not evaluation.passed:
        parts += [_output_text(output) for output in evaluation.correctness.outputs if not output.matches]
    if evaluation.work and evaluation.work.sentence:
        parts.append(f"- {evaluation.work.sentence}")
    if evaluation.timing:
        parts += _times(evaluation.timing)
    if evaluation.profile and evaluation.passed:
        parts += _counts(evaluation.profile, evaluation.full_size, candidate.source, stage)
    if evaluation.log and not evaluation.passed:
        log = reduced_log(evaluation.log)
        parts += ["It printed, at the end:\n" + _indented(log)] if log else []
    return "\n".join(parts) + "\n"


def _times(timing: Timing) -> list[str]:
    how = "replays of a CUDA graph" if timing.method == "graph" else "a pair of events around each call"
    said = [f"- median {timing.median_ms:.4g} ms (cold L2), by {how}"]
    if timing.not_by_graph:
        said.append(f"- no CUDA graph, although it is under 10 µs: {timing.not_by_graph}")
    if timing.host_ms is not None:
        where = "the latency holds it: the call waits for the device" if timing.host_included else "not in it"
        said.append(f"- host, queueing one call: {timing.host_ms:.4g} ms ({where})")
    others = (*timing.baselines, *((timing.rival,) if timing.rival else ()))
    return said + [
        f"- {b.speedup:.3g}× against {b.name} ({b.median_ms:.4g} ms), "
        f"95 % interval {b.speedup_low:.3g}× to {b.speedup_high:.3g}×"
        for b in others
    ]


def _ordered(evaluation: Evaluation) -> list[Finding]:
    """Sort the findings: deciding ones first, then flags."""
    return sorted(evaluation.findings, key=lambda item: item.severity is not Severity.DECIDES)


def source_line(source: str, line: int) -> str:
    """Line `line` (from 1) of `source` without its indentation; empty when there is none."""
    lines = source.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines())


def _finding_text(finding: Finding, source: str, told: str) -> str:
    """Format a finding; a message that `told` contains already is left out."""
    text = f"- {finding.kind}" + ("" if finding.message in told else f": {finding.message}")
    if finding.cta is not None and "CTA" not in finding.message:
        text += f" CTA {finding.cta}, thread {finding.thread}."
    if finding.line and not is_own(finding.file, finding.line):
        return f"{text}\n  in the library, {PurePosixPath(finding.file).name}:{finding.line}"
    if finding.line:
        text += f"\n  line {finding.line}: `{source_line(source, finding.line)}`"
        if finding.severity is Severity.DECIDES:
            text += f"\n{_indented(excerpt(source, finding.line))}"
            text += _other_places(finding, source)
    return text


def _other_places(finding: Finding, source: str) -> str:
    """Quote the other lines of the file that a message names, such as the first access of a race."""
    name = re.escape(PurePosixPath(finding.file).name if finding.file else FILE_NAME)
    named = {int(number) for number in re.findall(rf"\b{name}:(\d+)", finding.message)} - {finding.line}
    lines = ((number, source_line(source, number)) for number in sorted(named))
    return "".join(f"\n  line {number}: `{line}`" for number, line in lines if line)


def _output_text(output: OutputComparison) -> str:
    text = (
        f"- output {output.index} ({output.dtype}, shape {output.shape}): {output.bad_fraction:.3%} of "
        "the elements are "
        f"outside the tolerance; largest error {output.max_abs_error:.3g}, relative L2 error "
        f"{output.relative_l2_error:.3g} where {output.tolerance_l2:.3g} is allowed."
    )
    if output.first_bad is not None and output.first_bad_values is not None:
        got, wanted = output.first_bad_values
        text += f" First wrong element {output.first_bad}: {got:.6g} instead of {wanted:.6g}."
    return f"{text} {output.pattern}".rstrip() + wrong_text(output.wrong)


def counters_text(counters: Counters) -> str:
    """Format the counts that decide on a strategy, in one line with their units."""
    text = (
        f"{counters.gmem_sectors:,} global 32-byte sectors ({counters.gmem_ideal_sectors:,} would carry "
        "the bytes), "
        f"{counters.gmem_requests:,} global requests, {counters.warp_instructions:,} warp instructions"
    )
    if counters.smem_wavefronts:
        text += f", {counters.smem_wavefronts:,} shared wavefronts"
    if counters.barriers:
        text += f", {counters.barriers:,} barriers"
    if counters.divergent_branches:
        text += f", {counters.divergent_branches:,} divergent of {counters.branches:,} branches"
    return text


def _counts(profile: Profile, sample: FullSizeSample | None, source: str, stage: Stage | None) -> list[str]:
    """Format the counts at full size where they were sampled, and those of the size that was run."""
    at_full_size = _full_size_lines(sample) if sample is not None and sample.launches else []
    if stage is None or stage in _WITH_LINES:
        return [*at_full_size, *_profile_lines(profile, source)]
    if at_full_size:
        return at_full_size
    if profile.source is not ProfileSource.SIMULATED:
        return []
    launches = f"{len(profile.launches)} launch{'' if len(profile.launches) == 1 else 'es'}"
    heading = (
        f"Counts of one call ({profile.source.value}, {profile.device}; {launches}) at the size that is run, "
        "which decide:"
    )
    return [heading, f"- {counters_text(profile.counters)}"]


def _full_size_lines(sample: FullSizeSample) -> list[str]:
    counters = sum((one.profile.counters for one in sample.launches), Counters())
    launches = f"{len(sample.launches)} launch{'' if len(sample.launches) == 1 else 'es'}"
    return [
        f"Counts of one call at full size (a sample of its CTAs; {launches}), from which time is estimated:",
        f"- {counters_text(counters)}",
    ]


def _profile_lines(profile: Profile, source: str) -> list[str]:
    size = " at the size that is run" if profile.source is ProfileSource.SIMULATED else ""
    lines = [f"Counts of one call{size} ({profile.source.value}, {profile.device}):"]
    lines += [
        f"- kernel `{function_name(launch.kernel, source)}`, grid {launch.grid}, block {launch.block}: "
        f"{counters_text(launch.counters)}"
        for launch in profile.launches
    ]
    return lines + costly_text(profile, source)
