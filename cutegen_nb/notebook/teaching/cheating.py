"""Exploit lab: judges a cheat, names the checks that caught it, and keeps a scoreboard of a person's own."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from cutegen_nb.app.output import columns
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckState, Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.problem import Problem
from cutegen_nb.evaluator.catalog.catalog import CHECKS
from cutegen_nb.exploits.library import Exploit, chosen, problem_names, problem_of
from cutegen_nb.notebook.engine import EventLoopThread
from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.notebook.teaching.checking import SIMULATED
from cutegen_nb.report.markup import visible
from cutegen_nb.wiring import DEFAULT_FOLDER

_FILE = "cheats.json"
"""File of the scoreboard, in the folder of the sessions."""
_BROKEN = frozenset({Verdict.COMPILE_FAILED, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.OUT_OF_MEMORY})
"""Verdicts on a candidate that did not work: it cheated nobody."""
DEPTHS = (
    "did not work",
    "stopped by reading its source",
    "caught at the first look (tier A)",
    "caught at the closer look (tier B)",
    "passed with a flag for a person",
    "passed",
)
"""Depths that a candidate may reach; the place in this list is its score."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgedCheat:
    """Verdict on a cheat, with what caught it; its text is what a notebook shows."""

    problem: str
    """Problem that it was judged on."""
    name: str
    """Name of the shipped cheat, or file."""
    verdict: str
    """Verdict of the evaluation."""
    depth: int
    """Place in `DEPTHS`."""
    caught_by: tuple[str, ...]
    """Names of the checks that found something, and kinds of flags where it passed."""
    summary: str
    """Sentence of the evaluation."""

    def __repr__(self) -> str:
        lines = [f"{self.name} on {self.problem}: {self.verdict}, {DEPTHS[self.depth]}", f"  {self.summary}"]
        lines += [f"  caught by: {name}{_stops(name)}" for name in self.caught_by]
        if self.depth == len(DEPTHS) - 1:
            lines.append("  Nothing was found. If it does not do the work, you found a hole: keep the file.")
        return visible("\n".join(lines))


def _stops(name: str) -> str:
    found = next((check.stops for check in CHECKS if check.name == name), "")
    return f", which stops {found}" if found else ""


def shipped(name: str) -> Exploit:
    """Return a shipped candidate. Raises UsageError for an unknown one."""
    return next(item for item in chosen((name,)) if item.name == name)


def source_of(name: str) -> str:
    """Return the source of a problem or of a shipped candidate, without the lines on what catches it.

    Raises UsageError for an unknown name.
    """
    if name in problem_names():
        return problem_of(name).source
    found = shipped(name)
    _, _, below = found.source.removeprefix('"""').partition('"""')
    return f'"""{found.summary} Problem: {found.problem.name}."""{below}'


def judge_shipped(engine: EventLoopThread, name: str) -> JudgedCheat:
    """Judge a shipped candidate on the simulator, at tier B."""
    found = shipped(name)
    if found.needs_gpu:
        raise NotebookUsageError(
            f"{name} does nothing unusual without a GPU: `%cutegen cheat {name} --show` shows its source"
        )
    return _judged(engine, found.problem, name, found.source)


def judge_own(engine: EventLoopThread, problem: str, path: str) -> JudgedCheat:
    """Judge the candidate of a file on a problem of the library and keep it on the scoreboard."""
    stated = problem_of(problem)
    _read()  # report an unreadable scoreboard before the evaluation, which takes a minute
    try:
        source = Path(path).expanduser().read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise NotebookUsageError(f"{path} cannot be read ({error}): write it with %%writefile") from None
    judged = _judged(engine, stated, Path(path).name, source)
    _keep(judged)
    return judged


def _judged(engine: EventLoopThread, problem: Problem, name: str, source: str) -> JudgedCheat:
    candidate = Candidate(source=source, author="person")
    work = engine.evaluator(SIMULATED).evaluate(problem, candidate, lambda _: None, Tier.B)
    try:
        evaluation = engine.result(work)
    except KeyboardInterrupt:
        raise NotebookUsageError("interrupted: nothing was judged") from None
    return JudgedCheat(
        problem=problem.name,
        name=name,
        verdict=evaluation.label,
        depth=depth_of(evaluation),
        caught_by=_caught_by(evaluation),
        summary=evaluation.summary.partition("\n")[0],
    )


def depth_of(evaluation: Evaluation) -> int:
    """Return how far a candidate got, as a place in `DEPTHS`."""
    if evaluation.passed:
        return 4 if _flags(evaluation) else 5
    verdict = evaluation.outcome.verdict if isinstance(evaluation.outcome, Judged) else None
    if verdict is None or verdict in _BROKEN:
        return 0
    if verdict is Verdict.SCREENED_OUT:
        return 1
    found = [item.tier for item in evaluation.checks if item.state is CheckState.FOUND]
    return 3 if found and Tier.A not in found else 2


def _flags(evaluation: Evaluation) -> tuple[str, ...]:
    kinds = (item.kind for item in evaluation.findings if item.severity is Severity.FLAG)
    return tuple(dict.fromkeys(kinds))


def _caught_by(evaluation: Evaluation) -> tuple[str, ...]:
    if evaluation.passed:
        return tuple(f"the flag {kind}" for kind in _flags(evaluation))
    return tuple(item.name for item in evaluation.checks if item.state is CheckState.FOUND)


def scoreboard_text() -> str:
    """Return the scoreboard as a table, the deepest cheat first."""
    found = sorted(_read(), key=lambda item: -item.depth)
    if not found:
        return "No cheat of yours was judged yet: `%cutegen cheat relu FILE.py` judges one."
    rows = [
        (
            str(item.depth),
            item.problem,
            item.name,
            item.verdict,
            DEPTHS[item.depth],
            "; ".join(item.caught_by),
        )
        for item in found
    ]
    table = columns(("score", "problem", "cheat", "verdict", "how far", "caught by"), rows)
    passed = found[0].depth == len(DEPTHS) - 1
    note = f"\n\nAn honest kernel passes too: a {len(DEPTHS) - 1} counts if the work is not done."
    return table + note if passed else table


def _keep(judged: JudgedCheat) -> None:
    """Keep a cheat on the scoreboard: the deepest of one file on one problem."""
    found = _read()
    same = [one for one in found if (one.problem, one.name) == (judged.problem, judged.name)]
    others = [one for one in found if one not in same]
    best = max([*same, judged], key=lambda one: one.depth)
    path = DEFAULT_FOLDER / _FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([asdict(one) for one in [*others, best]], indent=1), encoding="utf-8")
    except OSError as error:
        raise NotebookUsageError(
            f"the scoreboard was not kept, {path} cannot be written ({error.strerror}): free space or mend "
            "its permissions, then run the cell again"
        ) from None


def _read() -> list[JudgedCheat]:
    """Read the scoreboard. Raises UsageError for a file that cannot be read, which stays as it is."""
    path = DEFAULT_FOLDER / _FILE
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return [JudgedCheat(**{**one, "caught_by": tuple(one["caught_by"])}) for one in kept]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise NotebookUsageError(
            f"{path} holds no scoreboard that can be read ({type(error).__name__}): move it to another place"
        ) from None
