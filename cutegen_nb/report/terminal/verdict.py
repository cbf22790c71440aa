"""Text of a verdict for a terminal, in at most twelve lines: evidence, accuracy, speed and next step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.figures.accuracy import accuracy_text
from cutegen_nb.analysis.figures.baselines import missing_baselines
from cutegen_nb.analysis.figures.latency import spread
from cutegen_nb.analysis.figures.quantity import count, duration, interval, scaled, share, times
from cutegen_nb.analysis.hardware.occupancy import launch_occupancy
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.problem.admission import admission_text
from cutegen_nb.analysis.source.exhibits import exhibit_parts
from cutegen_nb.analysis.tables.counts import kernel_name
from cutegen_nb.core.candidate import FILE_NAME
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import CheckState, Evaluation
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.problem import ProblemFacts, Workload
from cutegen_nb.core.profile import LaunchProfile, is_own
from cutegen_nb.prompting.diagnostics import reduced_log
from cutegen_nb.prompting.facts import tensor_text
from cutegen_nb.prompting.feedback import source_line
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.fitting import paragraph
from cutegen_nb.report.terminal.next_steps import next_step

MOST_LINES = 12
"""Most lines of a verdict."""
VERBOSE = "`--verbose` lists every check"
"""Pointer to the full list of checks."""
_NOT_SEEN = ("outside-not-run", "not-examined", "no-trace", "outside-once", "threshold-not-tried")
"""Kinds of flags for checks that did not look at something; they precede flags of what was seen."""
_EXCERPT = re.compile(r"\s*(-->|(\d+\s*)?\|)")
"""Line of a compiler's source excerpt: ``--> candidate.py:12`` or ``12 | gY[i] = …``."""
_PLACE = re.compile(rf"\b{re.escape(FILE_NAME)}:(\d+)(:\d+)?")
"""Place in the candidate, by the name that its file has in the evaluator and not with the person."""
_SENTENCES = 2
"""Number of flags that are shown with their message."""
_NAMED = 2
"""Number of items of a list that are named before the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictSetting:
    """Source, problem and device of an evaluation."""

    source: str
    """Source of the candidate."""
    facts: ProblemFacts
    """Facts of the problem."""
    device: Device
    """Device that the candidate ran on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictLine:
    """One row of a verdict before wrapping."""

    text: str
    """Text on a single line."""
    spare: bool = False
    """True if the row may be left out where there is no room."""


def verdict_lines(
    evaluation: Evaluation, setting: VerdictSetting, *, passed_next: str = "", more: str = VERBOSE
) -> list[str]:
    """Format the verdict, its evidence and the next step, cut to the lines available.

    Args:
        evaluation: evaluation to describe.
        setting: source, problem and device of the evaluation.
        passed_next: next step after a pass; `next_steps` has those after a refusal.
        more: pointer to the full text.
    """
    steps = (next_step(evaluation.outcome) or passed_next, more)
    return fitted([*verdict_rows(evaluation, setting), VerdictLine(text=next_text(*steps))])


def next_text(*steps: str) -> str:
    """Format the last line: the next steps."""
    return f"Next: {'; '.join(step for step in steps if step)}."


def fitted(rows: Sequence[VerdictLine], most: int = MOST_LINES) -> list[str]:
    """Wrap rows to the terminal in `most` lines: spare rows are cut first, then the longest."""
    texts = [_PLACE.sub(r"line \1", " ".join(row.text.split())) for row in rows]
    folded = [paragraph(visible(text), "  ", first="") for text in texts]
    spare = [lines for row, lines in zip(rows, folded, strict=True) if row.spare]
    for lines in reversed(spare):
        _cut(lines, sum(map(len, folded)) - most, least=1)
    for lines in reversed(spare):
        _cut(lines, sum(map(len, folded)) - most, least=0)
    while (over := sum(map(len, folded)) - most) > 0 and len(longest := max(folded, key=len)) > 1:
        _cut(longest, min(over, 1), least=1)
    return [line for lines in folded for line in lines]


def _cut(lines: list[str], over: int, *, least: int) -> None:
    """Remove `over` lines from the end, keeping at least `least`.

    If some are left, the last one ends after a whole word, with an ellipsis.
    """
    kept = max(len(lines) - max(over, 0), least)
    if kept >= len(lines):
        return
    del lines[kept:]
    if lines:
        words = lines[-1].rpartition(" ")[0].rstrip() or lines[-1][:-2]
        lines[-1] = f"{words} …"


def verdict_rows(
    evaluation: Evaluation, setting: VerdictSetting, *, counted: bool = True
) -> Iterator[VerdictLine]:
    """Iterate over the rows of a verdict: its scope, then its evidence, without the next step.

    Without `counted` the simulated counts are left out, because the caller shows them elsewhere.
    """
    yield VerdictLine(text=_head(evaluation, setting))
    if evaluation.provisional:
        yield VerdictLine(text=f"Provisional: {'; '.join(evaluation.provisional)}")
    if not evaluation.passed:
        yield VerdictLine(text=_summary(evaluation))
        yield from _evidence(evaluation, setting.source)
    accuracy = accuracy_text(evaluation.correctness)
    if accuracy and evaluation.correctness:
        yield VerdictLine(text=f"Accuracy: {accuracy}; {_counted(len(evaluation.correctness.seeds), 'seed')}")
    yield from _speed(evaluation, setting, counted=counted)
    yield from _code(evaluation)
    flags = [item for item in evaluation.findings if item.severity is Severity.FLAG]
    if told := _flags([item for item in flags if item.kind != "no-baseline"]):
        yield VerdictLine(text=told)
    if known := admission_text(setting.facts.admission):
        yield VerdictLine(text=f"Problem: {known}")
    if evaluation.checks:
        yield VerdictLine(text=_checks(evaluation), spare=True)


def _head(evaluation: Evaluation, setting: VerdictSetting) -> str:
    recorded = f" ({evaluation.recorded})" if evaluation.recorded else ""
    full, run = setting.facts.full, setting.facts.scaled
    if setting.device.kind is not DeviceKind.SIMULATOR or full.graph.inputs == run.graph.inputs:
        size = f"full size {_size(full)}"
    else:
        size = f"size {_size(run)}; not checked at the full size {_size(full)}"
    verdict = f"{evaluation.verdict_words}{' (provisional)' if evaluation.provisional else ''}"
    return f"{verdict} at tier {evaluation.tier.value} on {evaluation.device}, {size}{recorded}"


def _summary(evaluation: Evaluation) -> str:
    """Return the summary without the compiler's source excerpt; its line is shown apart."""
    lines = evaluation.summary.splitlines()
    return " ".join(line for line in lines if not _EXCERPT.match(line)) or evaluation.summary


def _size(workload: Workload) -> str:
    inputs = [tensor_text(value.spec) for value in workload.graph.inputs]
    return _listed(inputs) if inputs else "without inputs"


def _listed(items: Sequence[str], separator: str = ", ") -> str:
    more = len(items) - _NAMED
    return separator.join([*items[:_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _counted(number: int, name: str) -> str:
    return f"{number} {name}{'' if number == 1 else 's'}"


def _evidence(evaluation: Evaluation, source: str) -> Iterator[VerdictLine]:
    """Iterate over the source line, further deciding findings, the evidence, and the last printed line."""
    deciding = [item for item in evaluation.findings if item.severity is Severity.DECIDES]
    for item in deciding[:1]:
        if item.line and is_own(item.file, item.line):
            yield VerdictLine(text=f"Line {item.line}: `{source_line(source, item.line)}`")
    others = [item.message for item in deciding if item.message not in evaluation.summary]
    if others:
        yield VerdictLine(text=f"Found: {_listed(others, ' ')}")
    for exhibit in evaluation.exhibits[:1]:
        parts = dict(exhibit_parts(exhibit))
        heading = "What ran" if exhibit.trace else next(iter(parts), "")
        if heading:
            yield VerdictLine(text=f"Evidence, {heading.lower()}: {_listed(parts[heading], '; ')}")
    printed = reduced_log(evaluation.log).strip().splitlines()
    if printed and printed[-1].strip() not in evaluation.summary:
        yield VerdictLine(text=f"It printed last: {printed[-1].strip()}", spare=True)


def _speed(evaluation: Evaluation, setting: VerdictSetting, *, counted: bool) -> Iterator[VerdictLine]:
    """Iterate over latency, share of the roof and every baseline; on the simulator the counts instead."""
    roof = place(setting.facts, setting.device, evaluation)
    timing = evaluation.timing
    if timing:
        text = f"Latency: {duration(timing.median_ms / 1e3)}"
        around = spread(timing)
        text += f" ({around} from the 10th to the 90th percentile)" if around != "–" else ""
        if roof.sol_fraction is not None:
            least = f"{roof.bound.value} allows {duration(roof.floor_ms / 1e3)}; {setting.device.source}"
            text += f", {share(roof.sol_fraction)} of the roof ({least})"
        text += "; it holds host time, as the call waits for the device" if timing.host_included else ""
        yield VerdictLine(text=text)
        for item in (*timing.baselines, *((timing.rival,) if timing.rival else ())):
            faster = interval(item.speedup, item.speedup_low, item.speedup_high)
            yield VerdictLine(
                text=f"Against {item.name}: {faster}, it takes {duration(item.median_ms / 1e3)}"
            )
    elif counted and evaluation.profile and evaluation.passed and roof.moved_over_least:
        counters = evaluation.profile.counters
        yield VerdictLine(
            text=f"Counts ({evaluation.profile.source.value}, no times): {count(counters.gmem_sectors)} "
            f"sectors of 32 bytes, {times(roof.moved_over_least)} the least bytes; "
            f"{count(counters.warp_instructions)} warp instructions"
        )
    for name, reason in missing_baselines(evaluation):
        yield VerdictLine(text=f"Against {name}: not compared, it could not be made: {reason}")


def _code(evaluation: Evaluation) -> Iterator[VerdictLine]:
    """Describe registers, spills and occupancy of each launched kernel."""
    if evaluation.profile is None or not evaluation.passed:
        return
    told = [_compiled(one) for one in evaluation.profile.launches if one.resources is not None]
    kernels = list(dict.fromkeys(told))
    if kernels:
        yield VerdictLine(text=f"Code: {_listed(kernels, '; ')}", spare=True)


def _compiled(launch: LaunchProfile) -> str:
    given = launch.resources
    assert given is not None
    spilled = given.spill_store_bytes + given.spill_load_bytes
    spills = f"{scaled(spilled, 'B')} spilled" if spilled else "no spills"
    if launch.metrics:  # a profiler says what moved, not what the code holds of it
        moved = launch.counters.local_load_bytes + launch.counters.local_store_bytes
        spills = f"{scaled(moved, 'B')} of local memory moved" if moved else "no local memory moved"
    text = f"{kernel_name(launch)}: {given.registers} registers, {spills}"
    found = launch_occupancy(launch)
    if found is None:
        return text
    limited = f" (limited by {', '.join(found.limiters)})" if found.fraction < 1 else ""
    return f"{text}, occupancy {share(found.fraction)}{limited}"


def _flags(flags: Sequence[Finding]) -> str:
    """Describe the flags by number and kind, with the first message of each of the first kinds.

    Flags for something not looked at come first.
    """
    if not flags:
        return ""
    ordered = sorted(flags, key=lambda item: item.kind not in _NOT_SEEN)
    kinds = Counter(item.kind for item in ordered)
    named = ", ".join(f"{kind} ×{number}" if number > 1 else kind for kind, number in kinds.items())
    firsts: dict[str, Finding] = {}
    for item in ordered:
        firsts.setdefault(item.kind, item)
    told = " ".join(item.message for item in [*firsts.values()][:_SENTENCES])
    return f"Flags: {len(flags)} ({named}). {told}"


def _checks(evaluation: Evaluation) -> str:
    """Describe how many checks ran, and why the others did not."""
    ran = sum(1 for item in evaluation.checks if item.state is not CheckState.NOT_RUN)
    missing = [item for item in evaluation.checks if item.state is CheckState.NOT_RUN]
    reasons = Counter(item.note.partition("; ")[0] or "no reason is noted" for item in missing)
    because = ", ".join(f"{number} ({reason})" for reason, number in reasons.most_common())
    return f"Checks: {ran} of {len(evaluation.checks)} ran" + (f"; not run: {because}" if because else "")
