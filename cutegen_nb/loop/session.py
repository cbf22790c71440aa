"""Session runner: rounds until a rule or a person stops, each stored before it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutegen_nb.analysis.estimate.targets import with_figures
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.ports import Store
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Epoch, Round
from cutegen_nb.core.session import Budget, Plan, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.learning import records_of
from cutegen_nb.loop.resuming import resumable
from cutegen_nb.loop.round import run_round
from cutegen_nb.loop.stopping import StopInput, stop_reason, stopped_by_decision

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


async def run_session(
    session: Session, effects: Effects, store: Store, *, on_round: OnRound | None = None, repairs: int = 2
) -> Session:
    """Run rounds until a rule or a decision stops; return the session with its rounds and the reason.

    Cancellation or a crash interrupts a round; it goes on with the results that it had. Raises StoreError and
    ConfigurationError.
    """
    effects = resumable(effects, session.name, store)
    since = len(session.rounds)
    try:
        menu: tuple[Strategy, ...] = effects.author.menu(session.facts, session.problem.library)
    except Declined as error:
        return stopped(session, store, str(error))
    while True:
        reason = stop_reason(StopInput(session=session, menu=menu, target=effects.target, since=since))
        if reason:
            return stopped(session, store, reason)
        finished = await run_round(session, effects, menu, repairs=repairs)
        store.append(session.name, finished)
        session = replace(session, rounds=(*session.rounds, finished))
        effects.learn(records_of(session, rounds=(finished,), target=effects.target))
        if on_round is not None:
            on_round(session, finished)
        reason = stopped_by_decision(finished)
        if reason:
            return stopped(session, store, reason)


def stopped(session: Session, store: Store, reason: str) -> Session:
    """Store the reason for the end of a session, and return the session with it. Raises StoreError."""
    store.stop(session.name, reason)
    return replace(session, stopped=reason)
