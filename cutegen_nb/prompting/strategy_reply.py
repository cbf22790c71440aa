"""Parser of replies in words: a strategy that an author states, and a strategy restated from the code.

Both are labelled lines. Markup around a label is ignored: bold type, headings, bullets, a code fence.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from dataclasses import dataclass

from cutegen_nb.core.round import Reply
from cutegen_nb.core.strategy import ExpectedEffect, Optimisation
from cutegen_nb.prompting.predicted import counter_in, direction_in
from cutegen_nb.prompting.reply_faults import (
    UNPRINTED,
    ReplyFault,
    ReplyForm,
    Unusable,
    excerpt,
    fault_of_call,
    fault_of_refusal,
    fault_of_whole,
    is_cut_short,
    split_thoughts,
    truncated,
)

_STRATEGY = ReplyForm(
    wanted="Send the lines `Strategy:`, `Statement:`, `Combines:`, `Brings:` and `Moves:`, and no code",
    task="State the strategy that is asked for.",
    briefer="Answer more briefly: only the five lines, with a statement of two to four sentences.",
    characters="Use plain text.",
)
"""Form of a reply that states a strategy."""
_ALIGNMENT = ReplyForm(
    wanted="Send the lines `Done:`, `Carries:` and `Not done:`, and no code",
    task="Say what the code does.",
    briefer="Answer more briefly: only the three lines, one to four sentences after `Done:`.",
    characters="Use plain text.",
)
"""Form of a reply that restates a strategy."""
_STATEMENT_CHARACTERS = 4000
"""Longest statement in characters, twice what the request asks for: one too long costs another request."""
_NAME_CHARACTERS = 40
"""Longest name of a strategy in characters."""
_NOT_DONE_CHARACTERS = 1000
"""Characters kept of what was not done."""
_SIMILAR = 0.8
"""Similarity, from 0 to 1, from which a misspelt name counts: ``vectorise-128`` for ``vectors-128``."""
_DRESS = " \t>*_`#\"'{[(•·|-–—"
"""Characters that may stand before a label or a name."""
_MARK = r"[\s*_`\"'#]*(?:[:：=—–](?:[*_`\"']+(?=\s|$))?|$)"
"""Rest of a label: a colon with closing markup before or after it, or the end of the line."""
_NUMBER = re.compile(r"\A\d{1,2}[.)]\s*")
_FENCE = ("```", "~~~")
_RULE = re.compile(r"(-{3,}|\*{3,}|_{3,}|={3,})")
_NAME_END = re.compile(r"\s+[–—-]\s+|:\s+|\s*\(|\.\s|,\s")
"""End of a name, where an explanation follows on the same line."""
_ITEMS = re.compile(r"[,;\n]|\s(?:and|as well as|plus)\s|\s[+&]\s")
"""Separators of a list."""
_NONE = frozenset({"", "none", "nothing", "n-a", "na", "no", "neither", "not-applicable", "empty"})
"""Items that stand for an empty list."""
_NO_STRATEGY = frozenset({"cannot-apply", "already-done", "none", "nothing", "n-a"})
"""Names with which an author declines to state a strategy."""
_DECLINED = re.compile(
    r"\W*(?:none|nothing)[*_`.,:;]*(?=[\s–—])[\s*_`.,:;–—-]*(?:because\b)?[\s*_`,:–—-]*(?P<reason>.*)",
    re.IGNORECASE,
)
"""Value of the line ``Strategy: none — because …``."""
_NEGATED = ("no-", "not-", "without-")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedStrategy:
    """Strategy in an author's words."""

    name: str
    """Name in lower case, its words joined by hyphens, at most 40 characters."""
    statement: str
    """Instruction on one line."""
    brings: tuple[Optimisation, ...] = ()
    """Optimisations that the strategy is to carry out."""
    effects: tuple[ExpectedEffect, ...] = ()
    """Counters expected to move."""
    combines: tuple[str, ...] = ()
    """Names of the strategies that it combines, in the form of `strategy_name`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedAlignment:
    """Strategy restated by an author from the code."""

    statement: str
    """Effect of the code, on one line."""
    carries: tuple[Optimisation, ...] = ()
    """Optimisations that the code carries out by the author's words."""
    not_done: str = ""
    """Part of the strategy that the code does not carry out, in words; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoStrategy:
    """Answer that the other kernel has nothing worth taking over, instead of a strategy."""

    reason: str
    """Reason in the author's words, on one line."""


def parse_strategy(reply: Reply, *, may_decline: bool = False) -> StatedStrategy | NoStrategy | Unusable:
    """Parse a reply to a request to cross two strategies or to invent one.

    With `may_decline`, the reply may state none and give the reason: ``Strategy: none — because …``.
    """
    read = _lines(reply, _STRATEGY, ("strategy", "statement", "combines", "brings", "moves"))
    if isinstance(read, Unusable):
        return read
    text, found = read
    if may_decline and (declined := _declined(found)):
        return declined
    # `NAME`, or `NAME: statement` as strategies stand in requests.
    named = [_NAME_END.split(value.partition("\n")[0], maxsplit=1) for value in found.get("strategy", ())]
    names = {strategy_name(parts[0]) for parts in named}
    if len(names) > 1:
        return Unusable(
            fault=ReplyFault.SEVERAL_STRATEGIES,
            reason=f"The answer states {len(names)} strategies ({', '.join(sorted(names))}). State one.",
        )
    name = next(iter(names), "")
    if not name:
        return _missing("Strategy", "a short name with hyphens", text, reply, _STRATEGY)
    if name in _NO_STRATEGY:
        return Unusable(
            fault=ReplyFault.REFUSED,
            reason=f"The answer states no strategy ({excerpt(text)!r}). State the one that the evidence "
            f"supports most. {_STRATEGY.wanted}.",
        )
    statement = _last(found, "statement") or " ".join(named[-1][1:])
    if not statement:
        return _missing("Statement", "what to do, in two to four sentences", text, reply, _STRATEGY)
    if len(statement) > _STATEMENT_CHARACTERS:
        return _too_long("Statement", statement, "State the strategy in two to four sentences.")
    return StatedStrategy(
        name=name,
        statement=statement,
        brings=_optimisations(_last(found, "brings")),
        effects=_effects(_last(found, "moves")),
        combines=_names(_last(found, "combines")),
    )


def _declined(found: dict[str, list[str]]) -> NoStrategy | None:
    """Reason of a reply whose only strategy is none; None where it states one or gives no reason."""
    values = found.get("strategy", [])
    if len(values) != 1 or _last(found, "statement"):
        return None
    match = _DECLINED.match(" ".join(values[0].split()))
    reason = match["reason"].strip(_DRESS) if match else ""
    return NoStrategy(reason=reason[:_STATEMENT_CHARACTERS]) if reason else None


def parse_alignment(reply: Reply) -> StatedAlignment | Unusable:
    """Parse a reply to a request to restate a strategy from the code."""
    read = _lines(reply, _ALIGNMENT, ("done", "carries", "not done"))
    if isinstance(read, Unusable):
        return read
    text, found = read
    statement = _last(found, "done")
    if not statement:
        return _missing("Done", "what the code does, in one to four sentences", text, reply, _ALIGNMENT)
    if len(statement) > _STATEMENT_CHARACTERS:
        return _too_long("Done", statement, "Say what the code does in one to four sentences.")
    not_done = _last(found, "not done")
    return StatedAlignment(
        statement=statement,
        carries=_optimisations(_last(found, "carries")),
        not_done="" if strategy_name(not_done) in _NONE else not_done[:_NOT_DONE_CHARACTERS],
    )


def strategy_name(text: str) -> str:
    """Make a strategy's name from any text: lower case, words joined by hyphens, at most 40 characters.

    Names compare equal in this form however an author writes them. Empty where no letter is left.
    """
    plain = unicodedata.normalize("NFKD", text[:400]).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(name) <= _NAME_CHARACTERS:
        return name
    whole_words = name[: _NAME_CHARACTERS + 1].rpartition("-")[0]
    return whole_words or name[:_NAME_CHARACTERS]


def _lines(
    reply: Reply, form: ReplyForm, labels: tuple[str, ...]
) -> tuple[str, dict[str, list[str]]] | Unusable:
    """Return the answer and the values by label, or the fault of the whole reply."""
    thoughts, text = split_thoughts(reply.text.replace("\r\n", "\n"))
    fault = fault_of_whole(reply, text, form, thoughts)
    if fault is not None:
        return fault
    if is_cut_short(reply):
        return truncated(text, form)
    return text, _values(text, labels)


def _values(text: str, labels: tuple[str, ...]) -> dict[str, list[str]]:
    """Collect the text after each label, one value for each time that it stands there."""
    # The longer label first: `Not done` before `Done`.
    names = "|".join(re.escape(label) for label in sorted(labels, key=len, reverse=True))
    pattern = re.compile(rf"(?P<label>{names}){_MARK}", re.IGNORECASE)
    found: list[tuple[str, list[str]]] = []
    current: list[str] | None = None
    begun = False
    for line in text.split("\n"):
        # Stripped step by step: a regular expression for the markup takes hours on a repeated character.
        bare = _NUMBER.sub("", line.lstrip(_DRESS), count=1).lstrip(_DRESS)
        match = pattern.match(bare)
        if match:
            current = [bare[match.end() :]]
            begun = bool(_plain(current[0]))
            found.append((match["label"].lower(), current))
        elif line.strip().startswith(_FENCE) or _RULE.fullmatch(line.strip()):
            # A fence may open between a label and its value.
            current = None if begun else current
        elif current is not None:
            current.append(line)
            begun = begun or bool(_plain(line))
    if found:
        _cut_at_blank_line(found[-1][1])
    values: dict[str, list[str]] = {}
    for label, lines in found:
        values.setdefault(label, []).append("\n".join(filter(None, map(_plain, lines))))
    return values


def _cut_at_blank_line(lines: list[str]) -> None:
    """Remove closing words: what follows a blank line after the last value."""
    begun = False
    for place, line in enumerate(lines):
        if begun and not line.strip():
            del lines[place:]
            return
        begun = begun or bool(_plain(line))


def _plain(line: str) -> str:
    """Line without the markup around it and without invisible characters."""
    bare = " ".join(UNPRINTED.sub("", line).split())
    bare = bare.removeprefix("- ").removeprefix("* ").removeprefix("• ")
    return bare.strip(' \t*_"{}[]').removesuffix('",').strip()


def _last(found: dict[str, list[str]], label: str) -> str:
    """Last value of a label on one line. A list keeps its lines, up to `_STATEMENT_CHARACTERS` characters."""
    value = found.get(label, [""])[-1]
    if label in {"brings", "moves", "carries", "combines"}:
        return value[:_STATEMENT_CHARACTERS]
    return " ".join(value.split())


def _missing(label: str, meaning: str, text: str, reply: Reply, form: ReplyForm) -> Unusable:
    return (
        fault_of_refusal(text, form)
        or fault_of_call(reply, text, form)
        or Unusable(
            fault=ReplyFault.MISSING_LINE,
            reason=f"The answer has no line `{label}:` with {meaning} ({excerpt(text)!r}). {form.wanted}.",
        )
    )


def _too_long(label: str, statement: str, wanted: str) -> Unusable:
    return Unusable(
        fault=ReplyFault.OVER_LONG,
        reason=f"The text after `{label}:` has {len(statement):,} characters and may have "
        f"{_STATEMENT_CHARACTERS:,}. {wanted}",
    )


def _items(text: str) -> list[str]:
    """Items of a list, without their explanations in brackets."""
    return [item.strip(_DRESS) for item in _ITEMS.split(re.sub(r"\([^()\n]*\)", "", text))]


def _names(text: str) -> tuple[str, ...]:
    """Names of strategies in a list, each once; a revision before a name (``r3: name``) is left out."""
    bare = (re.sub(r"\A(?:from\s+)?r\d+\s*:\s*", "", item) for item in _items(text))
    names = (strategy_name(item) for item in bare)
    return tuple(dict.fromkeys(name for name in names if name not in _NONE))


def _optimisations(text: str) -> tuple[Optimisation, ...]:
    """Optimisations that a list names, each once; unknown names are ignored."""
    found = (item for name in _items(text) for item in _optimisations_of(strategy_name(name)))
    return tuple(dict.fromkeys(found))


def _optimisations_of(name: str) -> list[Optimisation]:
    if name in _NONE or name.startswith(_NEGATED):
        return []
    inside = [item for item in Optimisation if re.search(rf"(?<![a-z0-9]){item.value}(?![a-z0-9])", name)]
    if inside:
        return inside
    near = difflib.get_close_matches(name, [item.value for item in Optimisation], n=1, cutoff=_SIMILAR)
    return [item for item in Optimisation if item.value in near]


def _effects(text: str) -> tuple[ExpectedEffect, ...]:
    """Counters and directions of a list, each counter once; a direction also holds for those before it."""
    found: dict[str, ExpectedEffect] = {}
    waiting: list[str] = []
    for item in _items(text):
        counter, direction = counter_in(item), direction_in(item)
        waiting += [counter] if counter else []
        if direction is not None:
            for name in waiting:
                found.setdefault(name, ExpectedEffect(counter=name, direction=direction))
            waiting = []
    return tuple(found.values())
