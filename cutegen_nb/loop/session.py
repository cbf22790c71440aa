"""Session runner: rounds until a rule or a person stops, each stored before it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutegen_nb.analysis.estimate.targets import with_figures
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.ports import Store
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Action, Decision, Epoch, Round
from cutegen_nb.core.session import Budget, Plan, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.learning import records_of
from cutegen_nb.loop.resuming import resumable
from cutegen_nb.loop.round import decide_again, run_round
from cutegen_nb.loop.stopping import StopInput, is_unasked, stop_reason, stopped_by_decision

Replan = Callable[[Plan], Plan]
"""Function that changes a plan: the stored plan of a resumed session, or the default plan of a new one."""

OnRound = Callable[[Session, Round], None]
"""Callback for each round after it is stored; an exception ends the session and leaves the record."""

OnEpoch = Callable[[Session, Epoch], None]
"""Callback for each epoch of a population after it is stored; an exception ends the session likewise."""


async def open_session(  # noqa: PLR0913 - a session is all of these
    problem: Problem,
    effects: Effects,
    store: Store,
    budget: Budget,
    *,
    plan: Replan | None = None,
    fresh: bool = False,
) -> Session:
    """Resume the stored session of this problem, or create one.

    A session with the same name, problem, library policy and device is resumed. Where another session has
    the name, or a `fresh` session is asked for, a number is appended (``softmax_2``). `plan` changes the
    stored plan or the default one. Raises ProblemError, EvaluatorError, StoreError.
    """
    device = with_figures(await effects.evaluator.device(), effects.target)
    chosen, stored = find_session(problem, device.name, store, fresh=fresh)
    if stored is not None:
        store.stop(chosen, "")
        store.asks(chosen, effects.author.name, effects.server)
        rules = plan(stored.plan) if plan else stored.plan
        return replace(
            stored,
            budget=_resumed_budget(stored, budget, rules),
            author=effects.author.name,
            server=effects.server,
            plan=rules,
            stopped="",
        )
    session = Session(
        name=chosen,
        problem=problem,
        facts=await effects.evaluator.facts(problem, effects.progress),
        device=device,
        author=effects.author.name,
        budget=budget,
        plan=plan(Plan()) if plan else Plan(),
        created_at=effects.clock.now(),
        environment=effects.environment,
        server=effects.server,
    )
    store.create(session)
    return session


def _resumed_budget(stored: Session, budget: Budget, plan: Plan) -> Budget:
    """Return the budget of a resumed session; a population keeps its epochs where none are given anew."""
    if plan.population == 1 or budget.epochs is not None:
        return budget
    return replace(budget, epochs=stored.budget.epochs, rounds=max(budget.rounds, stored.budget.rounds))


def find_session(
    problem: Problem, device: str, store: Store, *, fresh: bool = False
) -> tuple[str, Session | None]:
    """Return the name and the stored session of a problem on a device; without one, a free name and None.

    A `fresh` session takes a free name in any case. Raises StoreError.
    """
    taken = set(store.names())
    chosen, number = problem.name, 1
    while chosen in taken:
        stored = store.load(chosen)
        if not fresh and stored.problem.states(problem) and stored.device.name == device:
            return chosen, stored
        number += 1
        chosen = f"{problem.name}_{number}"
    return chosen, None


def other_name(wanted: str, name: str) -> str:
    """Sentence for a session whose name is not the `wanted` one; empty where it is."""
    if name == wanted:
        return ""
    return f"{wanted} is stored with another source, device or library policy: this session is {name}"


async def run_session(
    session: Session, effects: Effects, store: Store, *, on_round: OnRound | None = None, repairs: int = 2
) -> Session:
    """Run rounds until a rule or a decision stops; return the session with its rounds and the reason.

    A revision at whose gate a person had stopped waits for its decision first. A round that was stopped
    before its request was sent is not stored; it goes on when the session is resumed. Cancellation or a
    crash interrupts a round; it goes on with the results that it had. Raises StoreError and
    ConfigurationError.
    """
    effects = resumable(effects, session.name, store)
    since = len(session.rounds)
    try:
        menu: tuple[Strategy, ...] = effects.author.menu(session.facts, session.problem.library)
    except Declined as error:
        return stopped(session, store, str(error))
    session, reason = await decide_waiting(session, effects, store, on_round)
    while True:
        reason = reason or stop_reason(
            StopInput(session=session, menu=menu, target=effects.target, since=since)
        )
        if reason:
            return stopped(session, store, reason)
        finished = await run_round(session, effects, menu, repairs=repairs)
        reason = stopped_by_decision(finished)
        if is_unasked(finished):
            return stopped(session, store, reason)
        store.append(session.name, finished)
        session = replace(session, rounds=(*session.rounds, finished))
        effects.learn(records_of(session, rounds=(finished,), target=effects.target))
        if on_round is not None:
            on_round(session, finished)


def waiting_round(session: Session) -> Round | None:
    """Return the last round if a person stopped the session at its revision gate; None otherwise."""
    last = session.rounds[-1] if session.rounds else None
    made = last.decisions[-1] if last and last.decisions else None
    if last is None or made is None or last.slot is not None or last.evaluation is None:
        return None
    is_stop = made.gate == "revision" and made.action is Action.STOP and made.by.startswith("person:")
    return last if is_stop else None


def without_waiting(session: Session) -> Session:
    """Return the session without the round whose revision waits for its decision again."""
    return replace(session, rounds=session.rounds[:-1]) if waiting_round(session) else session


def decided_before(session: Session, store: Store) -> tuple[Decision, ...]:
    """Return what was decided in the round of a chain with which a session goes on. Raises StoreError."""
    waiting = waiting_round(session)
    stored = waiting.decisions[:-1] if waiting else ()
    kept = (item.result for item in store.intermediates(session.name))
    made = (item for item in kept if isinstance(item, Decision) and item.action is not Action.STOP)
    return (*stored, *made)


async def decide_waiting(
    session: Session, effects: Effects, store: Store, on_round: OnRound | None
) -> tuple[Session, str]:
    """Have the revision decided at whose gate a person had stopped, if there is one.

    The round stays stored as it was until it is decided. Returns the session, and the reason to stop it, if
    any. Raises StoreError.
    """
    waiting = waiting_round(session)
    if waiting is None:
        return session, ""
    finished = await decide_again(without_waiting(session), effects, waiting)
    store.amend(session.name, finished)
    session = replace(session, rounds=(*session.rounds[:-1], finished))
    effects.learn(records_of(session, rounds=(finished,), target=effects.target))
    if on_round is not None:
        on_round(session, finished)
    return session, stopped_by_decision(finished)


def stopped(session: Session, store: Store, reason: str) -> Session:
    """Store the reason for the end of a session, and return the session with it. Raises StoreError."""
    store.stop(session.name, reason)
    return replace(session, stopped=reason)
