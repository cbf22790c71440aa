"""Marks of an answer: points for a right result and for each target, with the reason for what is missing."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cutegen_nb.analysis.estimate.estimate import estimate
from cutegen_nb.analysis.estimate.targets import find_target
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.profile import Access, Counters, LaunchProfile, Profile, function_name
from cutegen_nb.core.strategy import Optimisation
from cutegen_nb.teaching.compile_hints import compile_hint
from cutegen_nb.teaching.exercise import ESTIMATED, Exercise, Target

COUNTS: Mapping[str, Callable[[Profile], int]] = {
    "threads": lambda profile: sum(_threads(launch) for launch in profile.launches),
    "sectors": lambda profile: profile.counters.gmem_sectors,
    "global memory instructions": lambda profile: profile.counters.gmem_requests,
    "global loads into registers": lambda profile: _register_loads(profile.counters),
    "wavefronts": lambda profile: profile.counters.smem_wavefronts,
    "bytes of shared memory": lambda profile: max(map(_smem_bytes, profile.launches), default=0),
    "barriers": lambda profile: profile.counters.barriers,
    "instructions": lambda profile: profile.counters.warp_instructions,
    "instructions a warp": lambda profile: max(map(_instructions_a_warp, profile.launches), default=0),
}
"""Counts that a target may limit, from the profile of one call."""
_WARP = 32
"""Threads in a warp."""
Approach = Mapping[Optimisation, str]
"""Optimisations that a kernel carries out, each with the figure that shows it."""
_PLACE = re.compile(r"\bcandidate\.py:(\d+)")
_ALLOCATED = re.compile(r"tensor 'allocated in line (\d+)'")
_INPUT = re.compile(r"tensor 'input (\d+)'")
_TOLERANCE = re.compile(r" \(allowed: [^)]*\)")
_DSL_ERROR = re.compile(r"^The DSL did not compile it: (\w+: )?(error(\[\w+\])?: )?")
_KERNEL_NAME = re.compile(r"^Kernel (\w+)")
_REFUSED = "launch-refused"
"""Kind of the flag for a launch that no GPU would accept; it names the limit."""
_LUCK = frozenset({"divergent-barrier"})
"""Kinds of flags for what is right by luck: they decide no verdict, but an answer with one is not right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkLine:
    """Points of one part of an exercise."""

    points: int
    """Points earned."""
    of: int
    """Points to earn."""
    text: str
    """Sentence on the part, with the reason where points are missing."""
    line: str = ""
    """Line of the cell that the reason is about, with its number; empty where there is none."""
    counted: bool = True
    """False for a target after a part that is not met."""

    @property
    def sign(self) -> str:
        """``✓`` for all points, ``✗`` for points missing, ``–`` where nothing was counted."""
        if not self.counted:
            return "–"
        return "✓" if self.points == self.of else "✗"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AnswerMark:
    """Mark of an answer to an exercise; its text is what a notebook shows."""

    exercise: str
    """Name of the exercise."""
    title: str
    """Title of the exercise."""
    lines: tuple[MarkLine, ...]
    """Points by part: the result, then the targets in order; nothing counts after a part that is not met."""

    @property
    def points(self) -> int:
        """Points earned."""
        return sum(line.points for line in self.lines)

    @property
    def of(self) -> int:
        """Points to earn."""
        return sum(line.of for line in self.lines)

    @property
    def solved(self) -> bool:
        """True if every point was earned."""
        return self.points == self.of

    def __repr__(self) -> str:
        state = "solved" if self.solved else "not solved yet"
        head = f"{self.exercise} · {self.title}: {state}, {self.points} of {self.of} points"
        return "\n".join([head, *map(_part_text, self.lines)])


def _part_text(part: MarkLine) -> str:
    return f"  {part.sign} {part.text}" + (f"\n    {part.line}" if part.line else "")


def refused(exercise: Exercise, reason: str, line: str = "") -> AnswerMark:
    """Return the mark of an answer whose result is not right, with the reason and the line concerned."""
    return _mark(exercise, MarkLine(points=0, of=exercise.points, text=reason, line=line), None, {})


def marked(
    exercise: Exercise, source: str, evaluation: Evaluation, approach: Approach | None = None
) -> AnswerMark:
    """Return the mark of an answer from its evaluation; `source` is the student's own part.

    `approach` decides on strategies that the exercise forbids or asks for.
    """
    lines = source.splitlines()
    if not evaluation.passed or evaluation.profile is None:
        decides = (item for item in evaluation.findings if item.severity is Severity.DECIDES)
        return refused(exercise, _reason(exercise, evaluation, lines), _line(next(decides, None), lines))
    lucky = next((item for item in evaluation.findings if item.kind in _LUCK), None)
    if lucky is not None:
        return refused(exercise, f"Right by luck: {_in_the_cell(lucky.message, lines)}", _line(lucky, lines))
    carried_out = approach or {}
    banned = next((name for name in carried_out if name.value in exercise.forbidden), None)
    if banned is not None:
        return refused(exercise, f"right, but {banned.value} is not allowed here: {carried_out[banned]}")
    seeds = len(evaluation.correctness.seeds) if evaluation.correctness else 0
    right = MarkLine(points=exercise.points, of=exercise.points, text=f"right on {seeds} fresh inputs")
    return _mark(exercise, right, evaluation, carried_out)


def _mark(
    exercise: Exercise, right: MarkLine, evaluation: Evaluation | None, approach: Approach
) -> AnswerMark:
    lines = [right]
    for target in exercise.targets:
        # One thing at a time: a kernel that is wrong or slow for one reason may meet others by accident.
        met = lines[-1].points == lines[-1].of
        if not met or evaluation is None:
            lines.append(_part(target, 0, f"{asked_for(target)}: comes next", counted=False))
        elif target.strategy:
            lines.append(_of_strategy(target, approach))
        elif target.count == ESTIMATED:
            lines.append(_of_estimate(target, evaluation))
        else:
            assert evaluation.profile is not None
            seen = COUNTS[target.count](evaluation.profile)
            lines.append(_of_figure(target, seen, f"{seen:,}"))
    return AnswerMark(exercise=exercise.name, title=exercise.title, lines=tuple(lines))


def asked_for(target: Target) -> str:
    """Return what a target asks for: ``at most 1,536 sectors``."""
    if target.strategy:
        return f"the strategy {target.strategy}"
    gpu = f" on {target.gpu}" if target.gpu else ""
    return f"at most {target.at_most:,} {target.count}{gpu}"


def _part(target: Target, points: int, text: str, *, counted: bool = True) -> MarkLine:
    return MarkLine(points=points, of=target.points, text=text, counted=counted)


def _of_figure(target: Target, seen: float, shown: str) -> MarkLine:
    if seen <= target.at_most:
        return _part(target, target.points, f"{asked_for(target)}: {shown}")
    return _part(target, 0, f"{asked_for(target)}: {shown}. {target.hint}")


def _of_estimate(target: Target, evaluation: Evaluation) -> MarkLine:
    sample = evaluation.full_size
    if sample is None or not sample.launches:
        reason = (sample and sample.missing) or "nothing was counted at full size"
        return _part(target, 0, f"{asked_for(target)}: no time can be estimated, {reason}")
    nanoseconds = estimate(sample, find_target(target.gpu)).seconds * 1e9
    return _of_figure(target, nanoseconds, f"{nanoseconds:,.0f}, an estimate")


def _of_strategy(target: Target, approach: Approach) -> MarkLine:
    figure = next((said for name, said in approach.items() if name.value == target.strategy), None)
    if figure is not None:
        return _part(target, target.points, f"{asked_for(target)}: {figure}")
    return _part(target, 0, f"{asked_for(target)}: the kernel does not carry it out. {target.hint}")


def _reason(exercise: Exercise, evaluation: Evaluation, lines: list[str]) -> str:
    """Return the verdict, and the first line of its summary in the words of the cell."""
    label = evaluation.outcome.verdict.value if isinstance(evaluation.outcome, Judged) else evaluation.label
    limit = next((item.message for item in evaluation.findings if item.kind == _REFUSED), "")
    first = limit or evaluation.summary.partition("\n")[0]
    source = "\n".join(lines)
    told = _TOLERANCE.sub("", _DSL_ERROR.sub("", first))
    told = _KERNEL_NAME.sub(lambda found: f"Kernel {function_name(found[1], source)}", told)
    told = _INPUT.sub(lambda found: f"tensor '{exercise.inputs[int(found[1])]}'", told)
    hint = compile_hint(told) if label == Verdict.COMPILE_FAILED.value else ""
    return f"{label}: {_in_the_cell(told.strip(), lines)} {hint}".rstrip()


def _in_the_cell(message: str, lines: list[str]) -> str:
    """Return a message with places and names as the student's cell has them."""
    told = _PLACE.sub(r"line \1", message)
    return _ALLOCATED.sub(lambda found: "out" if int(found[1]) > len(lines) else found[0], told)


def _line(finding: Finding | None, lines: list[str]) -> str:
    """Return the line of the cell that a finding names; empty where it names none."""
    if finding is None or not 0 < finding.line <= len(lines):
        return ""
    return f"line {finding.line}: {lines[finding.line - 1].strip()}"


def _register_loads(counters: Counters) -> int:
    return counters.gmem_accesses.get("load", Access()).requests


def _threads(launch: LaunchProfile) -> int:
    return math.prod(launch.grid) * math.prod(launch.block)


def _instructions_a_warp(launch: LaunchProfile) -> int:
    warps = math.prod(launch.grid) * math.ceil(math.prod(launch.block) / _WARP)
    return math.ceil(launch.counters.warp_instructions / warps)


def _smem_bytes(launch: LaunchProfile) -> int:
    return launch.dynamic_smem_bytes + launch.static_smem_bytes
