"""Stage transitions: CORRECT → STRUCTURE → PROFILE → TUNE → DONE; pure.

Structure comes first, because counters shown early pull an author into tuning the numbers of a kernel whose
shape is wrong. Counters enter when structural rounds bring no gain, or at the fixed depth of CuTeGen's
scripts (``--schedule paper``). For ablations they enter never, or from the first passing kernel on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.session import Schedule, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.knowledge_order import chosen
from cutegen_nb.loop.lineage import parent_of_next, since_branch
from cutegen_nb.loop.menu import of_stage, untried

PAPER_LAST_DEPTH = 10
"""Number of optimisation rounds after which CuTeGen's chain ends (``MAX_DEPTH``)."""
_PAPER_DEPTHS = {
    WorkloadClass.MATMUL: 6,
    WorkloadClass.ATTENTION: 6,
    WorkloadClass.CONVOLUTION: 6,
    WorkloadClass.REDUCTION: 5,
    WorkloadClass.NORM: 5,
    WorkloadClass.SOFTMAX: 5,
    WorkloadClass.LOSS: 3,
    WorkloadClass.ELEMENTWISE: 2,
}
"""Structural rounds before counters are shown, by workload class (``run_profiled_sample.py``)."""
_PAPER_OTHER = 5
"""Structural rounds for classes that the script does not name. Our own choice: most of these classes read
rows or windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Stage, parent and strategy of a round."""

    stage: Stage
    """Stage of the round; DONE where nothing is left to try."""
    because: str = ""
    """Sentence on the end of the stage before; empty where the stage goes on."""
    parent: Round | None = None
    """Round with the revision to start from; None while a first passing kernel is sought."""
    strategy: Strategy | None = None
    """Strategy to try; None in CORRECT and DONE."""
    chosen_because: str = ""
    """Sentence on the records of like problems that brought the strategy forward; empty where none did."""
    in_slot: bool = False
    """True in a slot of a population, which ends with its strategy: no other strategy follows it."""


def next_step(
    session: Session,
    menu: Sequence[Strategy],
    records: Sequence[StrategyRecord] = (),
    target: EstimateTarget | None = None,
) -> Step:
    """Choose stage, parent and strategy of the next round.

    `records` of like problems decide on the order, and without a GPU the estimate for `target`.
    """
    parent = parent_of_next(session)
    if parent is None:
        return Step(stage=Stage.CORRECT)
    left = untried(session, menu, parent)
    stage, because = _stage(session, left, parent, target)
    if stage is Stage.DONE:
        return Step(stage=stage, because=because, parent=parent)
    choice = chosen(of_stage(session, left, parent, stage, target), records, session, parent)
    assert choice is not None
    return Step(
        stage=stage,
        because=because,
        parent=parent,
        strategy=choice.strategy,
        chosen_because=choice.because,
    )


def at_plateau(rounds: Sequence[Round], k: int) -> bool:
    """Return whether the last `k` passing rounds brought no gain.

    A gain is a speed-up whose interval lies above 1.0, or a fallen count. Rounds whose candidate did not pass
    say nothing of the strategy's worth and are not counted.
    """
    judged = [item for item in rounds if item.comparison is not None]
    return len(judged) >= k > 0 and not any(
        item.comparison.relation.is_better for item in judged[-k:] if item.comparison
    )


def paper_depth(workload_class: WorkloadClass) -> int:
    """Structural rounds of a class before counters are shown, from CuTeGen's scripts."""
    return _PAPER_DEPTHS.get(workload_class, _PAPER_OTHER)


def optimisation_rounds(session: Session) -> int:
    """Depth of the chain: rounds after the first passing kernel in which a strategy was tried."""
    return sum(1 for item in session.rounds if item.strategy is not None and item.attempts)


def _stage(
    session: Session, left: Sequence[Strategy], parent: Round, target: EstimateTarget | None
) -> tuple[Stage, str]:
    rounds = [item for item in since_branch(session) if item.stage is not Stage.CORRECT]
    here = rounds[-1].stage if rounds else Stage.STRUCTURE

    def has(stage: Stage) -> bool:
        if stage is Stage.PROFILE and session.plan.schedule is Schedule.NEVER:
            return False
        return bool(of_stage(session, left, parent, stage, target))

    if not rounds and session.plan.schedule is Schedule.START and has(Stage.PROFILE):
        return Stage.PROFILE, "counters are shown from the first kernel on"
    if here is Stage.STRUCTURE:
        over = _structure_is_over(session, _trailing(rounds, here), structural=has(Stage.STRUCTURE))
        if not over:
            return Stage.STRUCTURE, ""
        order = (Stage.PROFILE, Stage.TUNE, Stage.STRUCTURE)
    elif here is Stage.PROFILE:
        over = _profile_is_over(session, _trailing(rounds, here), profiled=has(here), numbers=has(Stage.TUNE))
        if not over:
            return Stage.PROFILE, ""
        order = (Stage.TUNE, Stage.PROFILE, Stage.STRUCTURE)
    elif has(Stage.TUNE):
        return Stage.TUNE, ""
    else:
        over = "nothing is left to tune"
        order = (Stage.PROFILE, Stage.STRUCTURE, Stage.TUNE)
    found = next((stage for stage in order if has(stage)), Stage.DONE)
    return found, over


def _structure_is_over(session: Session, rounds: Sequence[Round], *, structural: bool) -> str:
    """Reason to leave STRUCTURE; empty while the stage goes on."""
    if not structural:
        return "no structural strategy is left to try on this revision"
    if session.plan.schedule is Schedule.PAPER:
        depth, wanted = optimisation_rounds(session), paper_depth(session.facts.workload_class)
        name = session.facts.workload_class.value
        return f"the paper's depth {wanted} for {name} is reached" if depth >= wanted else ""
    return _plateau_text(session, rounds)


def _profile_is_over(session: Session, rounds: Sequence[Round], *, profiled: bool, numbers: bool) -> str:
    if not profiled:
        return "no strategy is left that the counters ask for"
    if session.plan.schedule is Schedule.PAPER or not numbers:
        return ""
    return _plateau_text(session, rounds)


def _plateau_text(session: Session, rounds: Sequence[Round]) -> str:
    k = session.plan.plateau_rounds
    return f"{k} round{'' if k == 1 else 's'} in a row brought no gain" if at_plateau(rounds, k) else ""


def _trailing(rounds: Sequence[Round], stage: Stage) -> tuple[Round, ...]:
    """Unbroken run of rounds in `stage` at the end."""
    count = 0
    for item in reversed(rounds):
        if item.stage is not stage:
            break
        count += 1
    return tuple(rounds[len(rounds) - count :])
