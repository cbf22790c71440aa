"""Gate of an epoch: the draft of its members, changed by a person's decisions until approved or stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cutegen_nb.analysis.population.members import Member, candidates, select, stagnant_epochs
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.ports import Approver, Clock
from cutegen_nb.core.round import Action, Attempt, Decision, Epoch, Prompt
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.search.population import Duel
from cutegen_nb.core.session import Session
from cutegen_nb.loop.population.planning import restart_members

_SETTINGS = ("epochs", "population")
"""Settings that BUDGET may change."""


class MemberApprover:
    """Policy inside an epoch: approve every kernel that passed without an accusing flag.

    Selection decides later which kernels go on: a crossover may use the strategies of a kernel that is slower
    than the best.
    """

    _BY = "policy:population"

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:  # noqa: ARG002 - the port's
        """Approve the prompt."""
        return Decision(gate="prompt", action=Action.APPROVE, by=self._BY)

    async def review_revision(
        self,
        session: Session,  # noqa: ARG002 - the port's
        attempts: Sequence[Attempt],
        comparison: Comparison | None,
    ) -> Decision:
        """Approve a kernel that passed; reject any other with the reason."""
        evaluation = next((a.evaluation for a in reversed(attempts) if a.candidate), None)
        if evaluation is None or not evaluation.passed:
            reason, action = evaluation.summary if evaluation else "no candidate", Action.REJECT
        elif evaluation.provisional:
            reason, action = f"provisional: {'; '.join(evaluation.provisional)}", Action.REJECT
        elif evaluation.accusing:
            said = "; ".join(dict.fromkeys(f"{item.kind}: {item.message}" for item in evaluation.accusing))
            reason, action = f"Only a person approves what is flagged so: {said}", Action.REJECT
        else:
            relation = f"{comparison.words}: {comparison.reason}" if comparison else "passed"
            reason, action = relation, Action.APPROVE
        return Decision(gate="revision", action=action, by=self._BY, reason=reason)

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:  # noqa: ARG002 - the port's
        """Approve the members that selection kept."""
        return Decision(gate="epoch", action=Action.APPROVE, by=self._BY)


def draft_epoch(session: Session, duels: Sequence[Duel], decisions: Sequence[Decision] = ()) -> Epoch:
    """Select the members after the rounds of an epoch, with the decisions made so far at its gate.

    After `Plan.stagnant_epochs` epochs without a gain only the fastest kernel, the pinned ones and the first
    kernel stay, so that the next epoch tries other ways from the beginning.
    """
    size = _size(session, decisions)
    found = candidates(session, decisions, duels)
    best = _best(session, found)
    draft = Epoch(
        number=len(session.epochs) + 1,
        best=best,
        members=_digests(select(_best_pinned(found, best), size, session.plan.elites)),
        duels=tuple(duels),
        decisions=tuple(decisions),
    )
    if not _restarts(session, draft):
        return draft
    kept = {member.digest for member in restart_members(session)} | {draft.best}
    members = tuple(member for member in found if member.digest in kept)
    return replace(draft, members=_digests(members), restarted=True)


def _best(session: Session, found: Sequence[Member]) -> str:
    """Digest of the best kernel of `found`, which is sorted by speed; empty where it was dropped.

    A kernel whose interval holds 1 does not replace the best before the epoch, however fast it looks.
    """
    number = len(session.epochs) + 1
    for member in found:
        made_now = member.item.slot is not None and member.item.slot.epoch == number
        if made_now and member.item.comparison and member.item.comparison.relation.is_better:
            return member.digest
    before = session.best.candidate.digest if session.best and session.best.candidate else ""
    return before if before in {member.digest for member in found} else ""


def _best_pinned(found: Sequence[Member], best: str) -> list[Member]:
    """Members with the best one pinned, so that selection keeps it."""
    return [replace(member, pinned=member.pinned or member.digest == best) for member in found]


def _restarts(session: Session, draft: Epoch) -> bool:
    """Return whether the epoch restarts: no gain for `Plan.stagnant_epochs` epochs, and no restart before."""
    after = replace(session, epochs=(*session.epochs, draft))
    stale = stagnant_epochs(after) >= session.plan.stagnant_epochs
    return stale and not any(epoch.restarted for epoch in session.epochs)


def _digests(members: Sequence[Member]) -> tuple[str, ...]:
    return tuple(member.digest for member in members)


def _size(session: Session, decisions: Sequence[Decision]) -> int:
    changed = settings_changed(decisions)
    return changed.get("population", session.plan.population)


async def agree_on_epoch(session: Session, approver: Approver, clock: Clock, duels: Sequence[Duel]) -> Epoch:
    """Show the draft of an epoch until it is approved or the session stopped; return it with all decisions.

    A decision that names nothing known changes nothing and stays in the record. Each decision has the seconds
    that it took; a budget may count a person's.
    """
    decisions: list[Decision] = []
    while True:
        draft = draft_epoch(session, duels, decisions)
        start = clock.monotonic()
        decision = await approver.review_epoch(session, draft)
        decisions.append(replace(decision, seconds=round(clock.monotonic() - start, 3)))
        if decision.action in {Action.APPROVE, Action.STOP}:
            return replace(draft, decisions=tuple(decisions))


def settings_changed(decisions: Sequence[Decision]) -> dict[str, int]:
    """Return the settings that BUDGET decisions changed, the newest value of each."""
    found: dict[str, int] = {}
    for decision in decisions:
        name, _, value = decision.edited.partition("=")
        if decision.action is Action.BUDGET and name in _SETTINGS and value.isdigit() and int(value) > 0:
            found[name] = int(value)
    return found


def with_changed_budget(session: Session) -> Session:
    """Apply the changes of budget that were decided at the gates of finished epochs.

    A number that the command gives anew counts where it is larger.
    """
    changed = settings_changed([item for epoch in session.epochs for item in epoch.decisions])
    if "epochs" in changed and session.budget.epochs is not None:
        epochs = max(changed["epochs"], len(session.epochs))
        session = replace(session, budget=replace(session.budget, epochs=epochs))
    if "population" in changed:
        session = replace(session, plan=replace(session.plan, population=changed["population"]))
    return session


def check_decision(session: Session, draft: Epoch, decision: Decision) -> None:
    """Raise UsageError with a sentence where a decision at the gate of an epoch names nothing known."""
    kept = [item for digest in draft.members if (item := session.round_of(digest))]
    text = decision.edited.strip()
    if decision.action in {Action.PIN, Action.DROP}:
        able = ", ".join(f"r{item.number}" for item in session.rounds if item.approved)
        item = session.passing(text)
        if item is None or not item.approved:
            raise UsageError(f"{decision.action.value} needs an approved revision, not {text!r}: {able}")
        if decision.action is Action.DROP and [one.number for one in kept] == [item.number]:
            raise UsageError(f"r{item.number} is the only member: pin another one before, or stop")
    if decision.action is Action.REQUEST:
        name, _, statement = text.partition(":")
        if not name.strip() or not statement.strip():
            raise UsageError("a strategy is written as NAME: what to do, in one to three sentences")
    if decision.action is Action.FORBID and not text:
        raise UsageError("forbid needs the name of a strategy")
    if decision.action is Action.BUDGET and not settings_changed([replace(decision, edited=text)]):
        raise UsageError(f"a budget is given as epochs=N or population=N, not {text!r}")
