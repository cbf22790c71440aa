"""A session: rounds until a rule or a person says stop, each stored before anybody sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cutegen_nb.core.errors import Declined
from cutegen_nb.core.ports import Store
from cutegen_nb.core.problem import Problem
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Budget, Plan, Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.loop.round import Effects, run_round
from cutegen_nb.loop.stopping import Situation, stop_reason, stopped_by_decision

Replan = Callable[[Plan], Plan]
"""Changes parts of a plan: of the stored one of a session that is taken up, of the default of a new one."""

OnRound = Callable[[Session, Round], None]
"""Shown a round after it is stored; what it raises ends the session, not the record."""


async def open_session(  # noqa: PLR0913 - a session is all of these
    problem: Problem,
    effects: Effects,
    store: Store,
    budget: Budget,
    *,
    plan: Replan | None = None,
    fresh: bool = False,
) -> Session:
    """Take up the stored session of this problem, or begin one.

    The same name, problem and device go on from the stored rounds; where the name is taken by another,
    or a `fresh` session is asked for, a number is added (``softmax_2``). `plan` changes the stored plan
    or the default one. Raises ProblemError, EvaluatorError, StoreError.
    """
    device = await effects.evaluator.device()
    taken = set(store.names())
    chosen, number = problem.name, 1
    while chosen in taken:
        stored = store.load(chosen)
        same = stored.problem.digest == problem.digest and stored.device.name == device.name
        if same and not fresh:
            store.stop(chosen, "")
            return replace(
                stored,
                budget=budget,
                author=effects.author.name,
                plan=plan(stored.plan) if plan else stored.plan,
                stopped="",
            )
        number += 1
        chosen = f"{problem.name}_{number}"
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
    )
    store.create(session)
    return session


async def run_session(
    session: Session, effects: Effects, store: Store, *, on_round: OnRound | None = None, repairs: int = 2
) -> Session:
    """Run rounds until something says stop; the session with all of them, and the rule that fired.

    Cancelling it loses at most the round in flight. Raises StoreError and ConfigurationError.
    """
    since = len(session.rounds)
    try:
        menu: tuple[Strategy, ...] = effects.author.menu(session.facts)
    except Declined as error:
        return stopped(session, store, str(error))
    while True:
        reason = stop_reason(Situation(session=session, menu=menu, since=since))
        if reason:
            return stopped(session, store, reason)
        finished = await run_round(session, effects, menu, repairs=repairs)
        store.append(session.name, finished)
        session = replace(session, rounds=(*session.rounds, finished))
        if on_round is not None:
            on_round(session, finished)
        reason = stopped_by_decision(finished)
        if reason:
            return stopped(session, store, reason)


def stopped(session: Session, store: Store, reason: str) -> Session:
    """The session with the reason why it ended, which is stored first. Raises StoreError."""
    store.stop(session.name, reason)
    return replace(session, stopped=reason)
