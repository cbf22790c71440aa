"""Approval of prompts and revisions at the gates: by a policy, or by a person at a terminal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from cutegen_nb.analysis.population.summary import population_text
from cutegen_nb.analysis.source.diff import LineKind, diff
from cutegen_nb.analysis.source.exhibits import exhibit_lines
from cutegen_nb.analysis.source.simplification import KIND
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Action, Attempt, Decision, Epoch, Prompt
from cutegen_nb.core.search.comparison import Comparison
from cutegen_nb.core.session import Session
from cutegen_nb.loop.population.gate import check_decision
from cutegen_nb.prompting.feedback import counters_text

_DIFF_LINES = 60
"""Most lines of a diff shown at the gate."""

_EPOCH_WORDS = {
    Action.APPROVE: "approve",
    Action.PIN: "pin",
    Action.DROP: "drop",
    Action.REQUEST: "write",
    Action.FORBID: "forbid",
    Action.BUDGET: "budget",
}
"""Words of the decisions at the gate of an epoch; their first letters serve too."""
_EPOCH_HELP = (
    "a: go on with these members; p rN: keep rN whatever selection says; d rN: remove it; "
    "w NAME: WORDS: have this strategy tried in the next epoch; f NAME: try this strategy no more; "
    "b epochs=N or b population=N: change the budget; q: stop the session"
)

ReadLine = Callable[[str], Awaitable[str | None]]
"""Prompt function: shows the text and returns a line without its end; None at the end of the input."""
EditText = Callable[[str, str], Awaitable[str | None]]
"""Editor function for a text and a file suffix; returns None when the text was left unchanged."""


def _last(attempts: Sequence[Attempt]) -> tuple[Candidate | None, Evaluation | None]:
    final = next((attempt for attempt in reversed(attempts) if attempt.candidate), None)
    return (final.candidate, final.evaluation) if final else (None, None)


class AutoApprover:
    """Policy that approves every prompt, and every improvement that passed without an accusing flag."""

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:  # noqa: ARG002 - the port's
        """Approve the prompt."""
        return Decision(gate="prompt", action=Action.APPROVE, by="policy:auto")

    async def review_revision(
        self,
        session: Session,  # noqa: ARG002 - the port's
        attempts: Sequence[Attempt],
        comparison: Comparison | None,
    ) -> Decision:
        """Approve an improvement; reject anything else with the report's own words."""
        _, evaluation = _last(attempts)
        if evaluation is not None and evaluation.provisional:
            reason = f"provisional: {'; '.join(evaluation.provisional)}; evaluate it again"
            return Decision(gate="revision", action=Action.REJECT, by="policy:auto", reason=reason)
        if evaluation is not None and evaluation.passed and evaluation.accusing:
            said = "; ".join(dict.fromkeys(f"{item.kind}: {item.message}" for item in evaluation.accusing))
            reason = f"Only a person approves what is flagged so: {said}"
            return Decision(gate="revision", action=Action.REJECT, by="policy:auto", reason=reason)
        if comparison is not None and evaluation is not None and evaluation.passed:
            action = Action.APPROVE if comparison.relation.is_better else Action.REJECT
            reason = f"{comparison.words}: {comparison.reason}"
            return Decision(gate="revision", action=action, by="policy:auto", reason=reason)
        summary = evaluation.summary if evaluation else "no candidate"
        return Decision(gate="revision", action=Action.REJECT, by="policy:auto", reason=summary)

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:  # noqa: ARG002 - the port's
        """Approve the members that selection kept."""
        return Decision(gate="epoch", action=Action.APPROVE, by="policy:auto")


class ConsoleApprover:
    """Approver that asks a person at a terminal; the end of the input means stop."""

    def __init__(
        self, *, person: str, say: Callable[[str], None], read_line: ReadLine, edit_text: EditText
    ) -> None:
        self._by = f"person:{person}"
        self._say = say
        self._read_line = read_line
        self._edit_text = edit_text

    async def review_prompt(self, session: Session, prompt: Prompt) -> Decision:
        """Show the next request and wait for a decision."""
        wanted = prompt.strategy.statement if prompt.strategy else "A first kernel that is correct."
        name = prompt.strategy.name if prompt.strategy else "first kernel"
        stage = f" ({prompt.stage.value})" if prompt.stage else ""
        self._say(f"\nRound {len(session.rounds)} of {session.name}{stage}: {name}\n  {wanted}")
        while True:
            answer = await self._read_line("[a]sk  [v]iew  [s]teer  [e]dit  [q]uit (h for help) > ")
            decision = await self._prompt_answer(answer, prompt)
            if decision is not None:
                return decision

    async def _prompt_answer(self, answer: str | None, prompt: Prompt) -> Decision | None:
        word, _, rest = (answer or "").strip().partition(" ")
        if answer is None or word in {"q", "quit"}:
            return self._decision("prompt", Action.STOP, rest or ("end of input" if answer is None else ""))
        if word in {"a", "ask", "y"}:
            return self._decision("prompt", Action.APPROVE)
        if word in {"s", "steer"}:
            return await self._steer("prompt", rest)
        if word in {"e", "edit"}:
            edited = await self._edit_text(prompt.user, ".md")
            return self._decision("prompt", Action.EDIT, edited=edited) if edited else None
        if word in {"v", "view"}:
            self._say(f"{prompt.system}\n\n{prompt.user}")
            return None
        self._say(
            "a: send this request; v: read it whole; s WORDS: add your own words to it; e: edit it; q: stop"
        )
        return None

    async def review_epoch(self, session: Session, draft: Epoch) -> Decision:
        """Show the population and wait for a decision."""
        self._say(f"\n{population_text(session, draft)}")
        while True:
            answer = await self._read_line(
                "[a]pprove  [p]in  [d]rop  [w]rite  [f]orbid  [b]udget  [q]uit (h for help) > "
            )
            decision = self._epoch_answer(answer)
            if decision is None:
                self._say(_EPOCH_HELP)
                continue
            try:
                check_decision(session, draft, decision)
            except UsageError as error:
                self._say(str(error))
                continue
            return decision

    def _epoch_answer(self, answer: str | None) -> Decision | None:
        word, _, rest = (answer or "").strip().partition(" ")
        if answer is None or word in {"q", "quit"}:
            return self._decision("epoch", Action.STOP, rest or ("end of input" if answer is None else ""))
        actions = {"y": Action.APPROVE} | {
            name: action
            for action in _EPOCH_WORDS
            for name in (_EPOCH_WORDS[action][0], _EPOCH_WORDS[action])
        }
        if word not in actions:
            return None
        return self._decision("epoch", actions[word], edited=rest.strip())

    async def review_revision(
        self, session: Session, attempts: Sequence[Attempt], comparison: Comparison | None
    ) -> Decision:
        """Show verdict, comparison and diff, and wait for a decision."""
        candidate, evaluation = _last(attempts)
        assert candidate is not None
        assert evaluation is not None
        self._say(_revision_text(session, candidate, evaluation, comparison))
        while True:
            overrule = "[o]verrule  " if evaluation.may_be_overruled else ""
            answer = await self._read_line(
                f"[a]pprove  [r]eject  {overrule}[s]teer  [e]dit  [b]ranch  [q]uit (h for help) > "
            )
            decision = await self._revision_answer(answer, session, candidate, evaluation)
            if decision is not None:
                return decision

    async def _revision_answer(
        self, answer: str | None, session: Session, candidate: Candidate, evaluation: Evaluation
    ) -> Decision | None:
        word, _, rest = (answer or "").strip().partition(" ")
        if answer is None or word in {"q", "quit"}:
            return self._decision("revision", Action.STOP, rest or ("end of input" if answer is None else ""))
        if word in {"a", "approve"}:
            return self._approve(evaluation)
        if word in {"r", "reject"}:
            reason = rest or await self._read_line("why? > ") or ""
            return self._decision("revision", Action.REJECT, reason)
        if word in {"s", "steer"}:
            return await self._steer("revision", rest)
        if word in {"e", "edit"}:
            edited = await self._edit_text(candidate.source, ".py")
            return self._decision("revision", Action.EDIT, edited=edited) if edited else None
        if word in {"b", "branch"}:
            return self._branch(session, rest)
        if word in {"o", "overrule"}:
            return await self._overrule(evaluation, rest)
        self._say(
            "a: build on it; r WHY: do not, and say why; s WORDS: ask something of the next round, then "
            "decide; "
            "e: edit the source, which is evaluated; b rN: go on from another revision; "
            "o WHY: build on it although its verdict says not to, for a reason that is recorded; "
            "q: stop the session"
        )
        return None

    def _approve(self, evaluation: Evaluation) -> Decision | None:
        if evaluation.stands:
            return self._decision("revision", Action.APPROVE)
        other = ", overrule it" if evaluation.may_be_overruled else ""
        self._say(f"It cannot be approved: {evaluation.shortfall}. Reject it, edit it{other} or stop.")
        return None

    async def _overrule(self, evaluation: Evaluation, words: str) -> Decision | None:
        """Ask for the reason to build on a candidate despite its verdict; only a person may overrule."""
        if not evaluation.may_be_overruled:
            self._say(f"It cannot be overruled: {evaluation.why_not_overruled}.")
            return None
        words = words or await self._read_line("why is the evidence wrong? > ") or ""
        return self._decision("revision", Action.OVERRULE, words) if words.strip() else None

    def _branch(self, session: Session, label: str) -> Decision | None:
        if session.passing(label) is not None:
            return self._decision("revision", Action.BRANCH, edited=label.strip())
        able = ", ".join(
            f"r{item.number}" for item in session.rounds if item.evaluation and item.evaluation.passed
        )
        self._say(f"There is no passing revision {label!r} to go on from: {able or 'none passed yet'}.")
        return None

    async def _steer(self, gate: str, words: str) -> Decision | None:
        words = words or await self._read_line("what should it do? > ") or ""
        return self._decision(gate, Action.STEER, words) if words.strip() else None

    def _decision(self, gate: str, action: Action, reason: str = "", edited: str = "") -> Decision:
        return Decision(gate=gate, action=action, by=self._by, reason=reason.strip(), edited=edited)


def _revision_text(
    session: Session, candidate: Candidate, evaluation: Evaluation, comparison: Comparison | None
) -> str:
    lines = ["", f"r{len(session.rounds)}: {evaluation.verdict_words}. {evaluation.summary}"]
    if candidate.rationale:
        lines += [f"  {line}" for line in f"{candidate.author}: {candidate.rationale}".splitlines() if line]
    if comparison:
        lines.append(f"  {comparison.words}: {comparison.reason}")
    flagged = (item for item in evaluation.findings if item.kind == KIND or item in evaluation.accusing)
    lines += [f"  flagged: {item.message}" for item in flagged]
    lines += [f"  {line}" for exhibit in evaluation.exhibits for line in exhibit_lines(exhibit)]
    if evaluation.profile:
        lines.append(f"  {counters_text(evaluation.profile.counters)}")
    best = session.best
    if best and best.candidate:
        lines += [f"  changes against r{best.number}:", *_diff_lines(best.candidate.source, candidate.source)]
    return "\n".join(lines)


def _diff_lines(old: str, new: str) -> list[str]:
    signs = {LineKind.SAME: " ", LineKind.ADDED: "+", LineKind.REMOVED: "-"}
    changed = [
        f"  {signs[line.kind]} {line.text}" for hunk in diff(old, new, context=1).hunks for line in hunk.lines
    ]
    if len(changed) > _DIFF_LINES:
        return [*changed[:_DIFF_LINES], f"  … {len(changed) - _DIFF_LINES} more lines"]
    return changed or ["  (none)"]
