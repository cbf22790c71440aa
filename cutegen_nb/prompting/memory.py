"""Session memory in a prompt: earlier strategies, their outcomes, and the remarks of people.

The length is bounded. The newest rounds appear in full; older ones shrink to one line for each strategy. A
person's remarks are kept, shortened, whatever their age, as far as half the limit permits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy

CHARACTERS_A_TOKEN = 4
"""Characters of English or code in a token, roughly; precise enough to bound a text."""
MEMORY_TOKENS = 2000
"""Token limit for the earlier rounds in a prompt."""
_OLD_WORDS = 200
"""Characters kept of a person's remark in a summarised round."""
_ALWAYS_FULL = 2
"""Number of newest rounds that appear in full whatever their length."""


def tokens_of(text: str) -> int:
    """Estimate the number of tokens of a text, rounded up."""
    # Division rounded up.
    return -(-len(text) // CHARACTERS_A_TOKEN)


def round_label(item: Round) -> str:
    """Verdict of a round, or the reason for having none."""
    if item.evaluation is not None:
        return item.evaluation.label
    last = next((a.evaluation for a in reversed(item.attempts) if a.evaluation), None)
    return last.label if last else "no candidate"


def tried_text(
    session: Session, scores: Mapping[int, Sequence[str]] | None = None, *, tokens: int = MEMORY_TOKENS
) -> str:
    """Format one entry for each finished round; rounds beyond `tokens` are summarised, oldest first.

    `scores` holds lines on the outcome of a round's predictions, by its number.
    """
    rounds = [item for item in session.rounds if item.attempts]
    asked = requests_by_round(session)
    entries: list[str] = []
    left = tokens
    for item in reversed(rounds):
        entry = _entry(item, (scores or {}).get(item.number, ()), asked.get(item.number, ""))
        left -= tokens_of(entry)
        if left < 0 and len(entries) >= _ALWAYS_FULL:
            break
        entries.append(entry)
    old = rounds[: len(rounds) - len(entries)]
    return _summary(old, tokens, asked) + "".join(reversed(entries))


def requests_by_round(session: Session) -> dict[int, str]:
    """Return a person's requests by the number of the round that was to carry them out.

    A request at the gate of a revision is for the next round, one at the gate of a prompt for its own.
    """
    found: dict[int, str] = {}
    pending: list[str] = []
    for item in session.rounds:
        steers = [d for d in item.decisions if d.action is Action.STEER and d.reason.strip()]
        said = [*pending, *(d.reason.strip() for d in steers if d.gate == "prompt")]
        found |= {item.number: "\n".join(said)} if said else {}
        pending = [d.reason.strip() for d in steers if d.gate == "revision"]
    return found


def _entry(item: Round, scores: Sequence[str], asked: str) -> str:
    text = f"- r{item.number}, {_name(item)}: {round_label(item)}"
    if item.comparison:
        text += f", {item.comparison.words} ({item.comparison.reason.rstrip('.')})"
    elif item.evaluation:
        text += f" ({item.evaluation.summary.rstrip('.')})"
    elif item.note:
        text += f" ({item.note.rstrip('.')})"
    text += "; kept\n" if item.approved else "; not kept\n"
    text += "".join(f"  - not tried, {ended.text}\n" for ended in item.ended)
    text += _asked(asked)
    text += "".join(f"  - {line}\n" for line in scores)
    text += "".join(f"  - flagged: {line}\n" for line in _flags(item))
    return text + "".join(_words(decision) for decision in item.decisions)


def _asked(asked: str, most: int | None = None, where: str = "") -> str:
    """Quote a person's request in the round that carried it out, so that it stands beside what came of it."""
    return "".join(
        f"  > {where}the person had asked: {line}\n" for line in _shortened(asked, most).splitlines()
    )


def _shortened(text: str, most: int | None) -> str:
    return text if most is None or len(text) <= most else f"{text[:most].rstrip()} …"


def _flags(item: Round) -> list[str]:
    """Flags of a repair that simplified the kernel, shown so that the author does not repeat it."""
    evaluation = item.evaluation
    return [f.message for f in evaluation.findings if f.kind == "simplified"] if evaluation else []


def _name(item: Round) -> str:
    if item.ended and item.ended[-1] == item.attempts[-1].ended:
        return "no strategy carried out"
    return item.title


def _summary(rounds: Sequence[Round], tokens: int, asked: Mapping[int, str]) -> str:
    """Summarise older rounds: a line for each strategy, and people's remarks shortened."""
    if not rounds:
        return ""
    by_name: dict[str, list[Round]] = {}
    for item in rounds:
        by_name.setdefault(_name(item), []).append(item)
    lines = [f"- r{rounds[0].number} to r{rounds[-1].number}, in short:\n"]
    lines += [f"  - {name}: {_outcomes(items)}\n" for name, items in by_name.items()]
    over = [ended.text for item in rounds for ended in item.ended]
    lines += [f"  - not tried, {text}\n" for text in over]
    return "".join(lines) + _old_words(rounds, tokens, asked)


def _outcomes(rounds: Sequence[Round]) -> str:
    """Format ``3× same work, 1× less work; kept r4``: outcomes with their counts, and the last kept round."""
    relations = [item.comparison.words if item.comparison else round_label(item) for item in rounds]
    said = ", ".join(f"{relations.count(word)}× {word}" for word in dict.fromkeys(relations))
    kept = [item.number for item in rounds if item.approved]
    return f"{said}; kept r{kept[-1]}" if kept else said


def _old_words(rounds: Sequence[Round], tokens: int, asked: Mapping[int, str]) -> str:
    said = [
        text
        for item in rounds
        for text in (
            _asked(asked.get(item.number, ""), _OLD_WORDS, f"r{item.number}: "),
            *(_words(decision, _OLD_WORDS, f"r{item.number}: ") for decision in item.decisions),
        )
        if text
    ]
    kept, left = 0, tokens // 2
    # The newest remarks are kept first.
    for text in reversed(said):
        left -= tokens_of(text)
        if left < 0:
            break
        kept += 1
    dropped = len(said) - kept
    note = f"  > ({dropped} earlier remarks of the person are left out)\n" if dropped else ""
    return note + "".join(said[dropped:])


def _words(decision: Decision, most: int | None = None, where: str = "") -> str:
    # A request stands in the round that carries it out, and the newest in the prompt's own part.
    if decision.action in {Action.STOP, Action.STEER} or not decision.by.startswith("person:"):
        return ""
    verbs = {Action.REJECT: "rejected it", Action.OVERRULE: "overruled the verdict"}
    verb = verbs.get(decision.action, "said")
    reason = _shortened(decision.reason.strip(), most)
    return "".join(f"  > {where}the person {verb}: {line}\n" for line in reason.splitlines())


def steering_text(session: Session) -> str:
    """Return a person's request at the end of the last round, which applies to the next one.

    Where no author answered the last round, the words of its own request still apply and come first.
    """
    if not session.rounds:
        return ""
    last = session.rounds[-1]
    wanted = [d.reason for d in last.decisions if d.action is Action.STEER and d.gate == "revision"]
    if is_unanswered(last):
        wanted.insert(0, last.attempts[-1].prompt.steering)
    return "\n".join(filter(None, wanted))


def left_request(session: Session, strategy: Strategy | None) -> str:
    """Return a request as a person edited it that no author has answered; empty for another strategy's."""
    for item in reversed(session.rounds):
        if not is_unanswered(item) or item.strategy != strategy:
            break
        at_prompt = [made.action for made in item.decisions if made.gate == "prompt"]
        if at_prompt and at_prompt[-1] is Action.EDIT:
            return session.rounds[-1].attempts[-1].prompt.user
    return ""


def is_unanswered(item: Round) -> bool:
    """Return whether no author answered a round's last request, and the round has no candidate."""
    last = item.attempts[-1] if item.attempts else None
    return last is not None and last.reply is None and last.evaluation is None and item.candidate is None
