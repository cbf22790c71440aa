"""What a session remembers in a prompt: what was tried, what came of it, and what people said.

Bounded: the newest rounds are told in full; what is older shrinks to a line for each strategy, and a
person's words are kept, shortened, however old they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cutegen_nb.core.round import Action, Decision, Round
from cutegen_nb.core.session import Session

CHARACTERS_A_TOKEN = 4
"""Of English and of code, about; good enough to bound a text by."""
MEMORY_TOKENS = 2000
"""What the rounds before may take of a prompt."""
_OLD_WORDS = 200
"""Characters kept of what a person said in a round that is summarised."""
_ALWAYS_FULL = 2
"""Newest rounds that are told in full whatever they take."""


def tokens_of(text: str) -> int:
    """About how many tokens a text takes."""
    return -(-len(text) // CHARACTERS_A_TOKEN)


def round_label(item: Round) -> str:
    """The verdict of a round, or why it has none."""
    if item.evaluation is not None:
        return item.evaluation.label
    last = next((a.evaluation for a in reversed(item.attempts) if a.evaluation), None)
    return last.label if last else "no candidate"


def tried_text(
    session: Session, scores: Mapping[int, Sequence[str]] | None = None, *, tokens: int = MEMORY_TOKENS
) -> str:
    """One entry a finished round; those that do not fit `tokens` summarised, oldest first.

    `scores` are lines on what came of a round's claims, by its number.
    """
    rounds = [item for item in session.rounds if item.attempts]
    entries: list[str] = []
    left = tokens
    for item in reversed(rounds):
        entry = _entry(item, (scores or {}).get(item.number, ()))
        left -= tokens_of(entry)
        if left < 0 and len(entries) >= _ALWAYS_FULL:
            break
        entries.append(entry)
    old = rounds[: len(rounds) - len(entries)]
    return _summary(old, tokens) + "".join(reversed(entries))


def _entry(item: Round, scores: Sequence[str]) -> str:
    text = f"- r{item.number}, {_name(item)}: {round_label(item)}"
    if item.comparison:
        text += f", {item.comparison.relation.value} ({item.comparison.reason.rstrip('.')})"
    elif item.evaluation:
        text += f" ({item.evaluation.summary.rstrip('.')})"
    elif item.note:
        text += f" ({item.note.rstrip('.')})"
    text += "; kept\n" if item.approved else "; not kept\n"
    text += "".join(f"  - {line}\n" for line in scores)
    text += "".join(f"  - flagged: {line}\n" for line in _flags(item))
    return text + "".join(_words(decision) for decision in item.decisions)


def _flags(item: Round) -> list[str]:
    """What a repair gave up: the author is told, so that it does not do so again."""
    evaluation = item.evaluation
    return [f.message for f in evaluation.findings if f.kind == "simplified"] if evaluation else []


def _name(item: Round) -> str:
    return item.strategy.name if item.strategy else "first kernel"


def _summary(rounds: Sequence[Round], tokens: int) -> str:
    """A line for each strategy of the older rounds, and people's words in short, the newest of them first."""
    if not rounds:
        return ""
    by_name: dict[str, list[Round]] = {}
    for item in rounds:
        by_name.setdefault(_name(item), []).append(item)
    lines = [f"- r{rounds[0].number} to r{rounds[-1].number}, in short:\n"]
    lines += [f"  - {name}: {_outcomes(items)}\n" for name, items in by_name.items()]
    return "".join(lines) + _old_words(rounds, tokens)


def _outcomes(rounds: Sequence[Round]) -> str:
    """``3× same work, 1× less work; kept r4``: how often what came of it, and the last that was kept."""
    relations = [item.comparison.relation.value if item.comparison else round_label(item) for item in rounds]
    said = ", ".join(f"{relations.count(word)}× {word}" for word in dict.fromkeys(relations))
    kept = [item.number for item in rounds if item.approved]
    return f"{said}; kept r{kept[-1]}" if kept else said


def _old_words(rounds: Sequence[Round], tokens: int) -> str:
    said = [
        text
        for item in rounds
        for decision in item.decisions
        if (text := _words(decision, _OLD_WORDS, f"r{item.number}: "))
    ]
    kept, left = 0, tokens // 2
    for text in reversed(said):
        left -= tokens_of(text)
        if left < 0:
            break
        kept += 1
    dropped = len(said) - kept
    note = f"  > ({dropped} earlier remarks of the person are left out)\n" if dropped else ""
    return note + "".join(said[dropped:])


def _words(decision: Decision, most: int | None = None, where: str = "") -> str:
    if not decision.reason or not decision.by.startswith("person:") or decision.action is Action.STOP:
        return ""
    verbs = {Action.REJECT: "rejected it", Action.STEER: "asked", Action.OVERRULE: "overruled the verdict"}
    verb = verbs.get(decision.action, "said")
    reason = decision.reason.strip()
    if most is not None and len(reason) > most:
        reason = f"{reason[:most].rstrip()} …"
    return "".join(f"  > {where}the person {verb}: {line}\n" for line in reason.splitlines())


def steering_text(session: Session) -> str:
    """What a person asked for at the end of the last round: it holds for the next one."""
    if not session.rounds:
        return ""
    wanted = [
        d.reason for d in session.rounds[-1].decisions if d.action is Action.STEER and d.gate == "revision"
    ]
    return "\n".join(wanted)
