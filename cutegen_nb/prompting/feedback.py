"""What was found of a candidate, and what was tried, as text for the next prompt."""

from __future__ import annotations

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation, Finding, OutputComparison
from cutegen_nb.core.profile import Counters, Profile
from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.session import Session

_LOG_CHARACTERS = 3000
_FINDINGS = 8
_COSTLY_LINES = 5


def evaluation_text(evaluation: Evaluation, candidate: Candidate) -> str:
    """Verdict, evidence with the candidate's lines, errors against the reference, counts and times."""
    parts = [f"{evaluation.label} on {evaluation.device}. {evaluation.summary}"]
    parts += [_finding_text(finding, candidate.source) for finding in evaluation.findings[:_FINDINGS]]
    if evaluation.correctness and not evaluation.passed:
        parts += [_output_text(output) for output in evaluation.correctness.outputs if not output.matches]
    if evaluation.timing:
        timing = evaluation.timing
        parts.append(f"- median {timing.median_ms:.4g} ms (cold L2)")
        parts += [f"- {b.speedup:.3g}× against {b.name} ({b.median_ms:.4g} ms)" for b in timing.baselines]
    if evaluation.profile and evaluation.passed:
        parts += _profile_lines(evaluation.profile, candidate.source)
    if evaluation.log and not evaluation.passed:
        parts.append("It printed, at the end:\n" + _indented(evaluation.log[-_LOG_CHARACTERS:]))
    return "\n".join(parts) + "\n"


def source_line(source: str, line: int) -> str:
    """Line `line` (from 1) of `source` without its indentation; empty when there is none."""
    lines = source.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.rstrip().splitlines())


def _finding_text(finding: Finding, source: str) -> str:
    text = f"- {finding.kind}: {finding.message}"
    if finding.cta is not None and "CTA" not in finding.message:
        text += f" CTA {finding.cta}, thread {finding.thread}."
    if finding.line:
        text += f"\n  line {finding.line}: `{source_line(source, finding.line)}`"
    return text


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
    return f"{text} {output.pattern}".rstrip()


def counters_text(counters: Counters) -> str:
    """The counts a strategy is judged by, in one line with their units."""
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


def _profile_lines(profile: Profile, source: str) -> list[str]:
    lines = [f"Counts of one call ({profile.source.value}, {profile.device}):"]
    lines += [
        f"- kernel `{launch.kernel}`, grid {launch.grid}, block {launch.block}: "
        f"{counters_text(launch.counters)}"
        for launch in profile.launches
    ]
    costly = sorted(
        (
            line
            for launch in profile.launches
            for line in launch.lines
            if line.line and line.counters.gmem_sectors
        ),
        key=lambda line: line.counters.gmem_sectors,
        reverse=True,
    )
    if costly:
        lines.append("Lines that move the most sectors:")
        lines += [
            f"- line {item.line}: {item.counters.gmem_sectors:,} sectors: `{source_line(source, item.line)}`"
            for item in costly[:_COSTLY_LINES]
        ]
    return lines


def round_label(item: Round) -> str:
    """The verdict of a round, or why it has none."""
    if item.evaluation is not None:
        return item.evaluation.label
    last = next((a.evaluation for a in reversed(item.attempts) if a.evaluation), None)
    return last.label if last else "no candidate"


def tried_text(session: Session) -> str:
    """One entry a finished round: strategy, verdict, measured effect, and the words of who rejected it."""
    return "".join(_tried_entry(item) for item in session.rounds if item.attempts)


def _tried_entry(item: Round) -> str:
    name = item.strategy.name if item.strategy else "first kernel"
    text = f"- r{item.number}, {name}: {round_label(item)}"
    if item.comparison:
        text += f", {item.comparison.relation.value} ({item.comparison.reason.rstrip('.')})"
    elif item.evaluation:
        text += f" ({item.evaluation.summary.rstrip('.')})"
    elif item.note:
        text += f" ({item.note.rstrip('.')})"
    text += "; kept\n" if item.approved else "; not kept\n"
    return text + "".join(_words(decision) for decision in item.decisions)


def _words(decision: Decision) -> str:
    if not decision.reason or not decision.by.startswith("person:") or decision.action is Action.STOP:
        return ""
    verbs = {Action.REJECT: "rejected it", Action.STEER: "asked", Action.OVERRULE: "overruled the verdict"}
    verb = verbs.get(decision.action, "said")
    return "".join(f"  > the person {verb}: {line}\n" for line in decision.reason.strip().splitlines())


def steering_text(session: Session) -> str:
    """What a person asked for at the end of the last round: it holds for the next one."""
    if not session.rounds:
        return ""
    wanted = [
        d.reason for d in session.rounds[-1].decisions if d.action is Action.STEER and d.gate == "revision"
    ]
    return "\n".join(wanted)
