"""When a session ends: pure rules, each of which says in a sentence that it fired.

A rule takes what happened and gives a sentence or None. They are asked before each round, in the order of
`RULES`; the budgets, each with its own sentence, are in ``spending``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cutegen_nb.analysis.roofline import place
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Round
from cutegen_nb.core.session import Schedule, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.lineage import parent_digest
from cutegen_nb.loop.menu import left_for_a_gpu
from cutegen_nb.loop.spending import budget_spent
from cutegen_nb.loop.stages import PAPER_LAST_DEPTH, next_step, optimisation_rounds

ROOF_FRACTION = 0.95
"""Share of the roof (GPU) or of the least traffic (simulator) from which nothing is left to gain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the rules look at."""

    session: Session
    """Everything that happened."""
    menu: tuple[Strategy, ...]
    """What the author can carry out for this problem."""
    since: int = 0
    """Rounds that were stored when the session was taken up again: their failures do not stop it now."""


Rule = Callable[[Situation], str | None]


def stop_reason(situation: Situation) -> str:
    """The first rule that fires, in its words; empty while the session may go on."""
    return next((text for rule in RULES if (text := rule(situation))), "")


def stopped_by_decision(item: Round) -> str:
    """The sentence for a round at whose gate somebody said stop; empty otherwise."""
    decision = next((d for d in item.decisions if d.action is Action.STOP), None)
    if decision is None:
        return ""
    words = f": {decision.reason}" if decision.reason else ""
    return f"{decision.by} stopped the session at round {item.number}{words}"


def roof_share(session: Session, evaluation: Evaluation) -> float | None:
    """How near a passing candidate is to what no kernel can beat, 0–1; None where nothing says.

    On a GPU the floor of the roofline ÷ the median latency; on the simulator least bytes ÷ bytes moved,
    both at the size that ran.
    """
    roof = place(session.facts, session.device, evaluation)
    if roof.sol_fraction is not None:
        return roof.sol_fraction
    return 1 / roof.moved_over_least if roof.moved_over_least else None


def _budget_spent(situation: Situation) -> str | None:
    return budget_spent(situation.session) or None


def _paper_depth_reached(situation: Situation) -> str | None:
    session = situation.session
    if session.plan.schedule is not Schedule.PAPER or optimisation_rounds(session) < PAPER_LAST_DEPTH:
        return None
    return f"the paper's schedule ends after {PAPER_LAST_DEPTH} optimisation rounds"


def _author_failed(situation: Situation) -> str | None:
    rounds = situation.session.rounds
    if len(rounds) <= situation.since:
        return None
    last = rounds[-1]
    if last.candidate is not None or not last.note or any(attempt.reply for attempt in last.attempts):
        return None
    declined = next((a.evaluation for a in last.attempts if a.evaluation), None)
    if declined is not None and situation.session.best is not None:
        return None
    return last.note


def _evaluator_failed(situation: Situation) -> str | None:
    rounds = situation.session.rounds
    if len(rounds) <= situation.since:
        return None
    last = rounds[-1]
    unjudged = last.candidate is not None and last.evaluation is None
    return f"no evaluation could be had: {last.note}" if unjudged else None


def _repeats_itself(situation: Situation) -> str | None:
    """Before anything passed, an author that writes the same failing kernel again will go on doing so."""
    rounds = situation.session.rounds
    if situation.session.best is not None or len(rounds) < 2:  # noqa: PLR2004 - a pair
        return None
    last, earlier = rounds[-1], rounds[:-1]
    if last.candidate is None or parent_digest(last):
        return None
    same = any(item.candidate and item.candidate.digest == last.candidate.digest for item in earlier)
    return (
        f"the author wrote the same kernel again and it does not pass (round {last.number})" if same else None
    )


def _roof_reached(situation: Situation) -> str | None:
    """Times at the roof end a session at once; counts do so only with the menu exhausted."""
    session = situation.session
    evaluation = session.best.evaluation if session.best else None
    share = roof_share(session, evaluation) if evaluation and evaluation.timing else None
    if share is None or share < ROOF_FRACTION:
        return None
    return f"the best revision runs at {share:.2f} of the roof"


def _nothing_left(situation: Situation) -> str | None:
    """DONE: menu and tuning are exhausted on the revision that would be the parent."""
    session = situation.session
    step = next_step(session, situation.menu)
    if step.stage is not Stage.DONE or step.parent is None:
        return None
    text = f"every strategy was tried on r{step.parent.number}"
    evaluation = step.parent.evaluation
    share = roof_share(session, evaluation) if evaluation else None
    if share is not None and share >= ROOF_FRACTION and evaluation and not evaluation.timing:
        text += f", which moves no more than {1 / share:.2f}× the least bytes"
    waiting = left_for_a_gpu(session, situation.menu, step.parent)
    if waiting:
        text += f"; left for a GPU, as counts cannot show what they gain: {', '.join(waiting)}"
    return text


RULES: tuple[Rule, ...] = (
    _author_failed,
    _evaluator_failed,
    _repeats_itself,
    _roof_reached,
    _nothing_left,
    _paper_depth_reached,
    _budget_spent,
)
"""In the order they are asked."""
