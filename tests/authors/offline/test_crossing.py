"""The child of two kernels of the offline author: what both carry out together, or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.authors.offline.crossing import crossed
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.round import Attempt, Prompt, Reply, Usage
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.prompting.strategy_reply import parse_strategy
from cutegen_nb.testing.examples import finished_round, session_of

MENU = tuple(
    Strategy(name=name, statement=f"Do {name}.") for name in ("warps", "ctas", "vectors", "once", "coalesced")
)
BY_NAME = {item.name: item for item in MENU}


def code(steps):
    """Kernel file of a template: a row goes to warps or to CTAs, and vectors take in coalesced accesses."""
    done = set(steps)
    rows = next((name for name in reversed(steps) if name in {"warps", "ctas"}), "threads")
    others = sorted(done - {"warps", "ctas", "coalesced"})
    plain = "coalesced" in done and "vectors" not in done
    return f'"""{", ".join(steps)}"""\nrows = {rows!r}\nothers = {others!r}\nplain = {plain}\n'


def grown(*lines):
    """A session with the first kernel as r0, and a kernel for each of `lines`, which are steps upon r0."""
    first = Candidate(source=code(()), author="offline")
    rounds = [made(0, first)]
    for steps in lines:
        parent, applied = first, ()
        for name in steps:
            applied = (*applied, name)
            kernel = Candidate(
                source=code(applied), author="offline", parents=(parent.digest,), strategy=BY_NAME[name]
            )
            parent = kernel
            rounds.append(made(len(rounds), kernel))
    return replace(session_of(Relation.FIRST), author="offline", rounds=tuple(rounds))


def made(number, kernel):
    asked = Prompt(system="", user="", digest="", strategy=kernel.strategy)
    attempt = Attempt(purpose="optimise", prompt=asked, reply=None, candidate=kernel)
    return replace(finished_round(number), attempts=(attempt,), strategy=kernel.strategy)


def cross(session, base, other):
    prompt = Prompt(system="", user="", digest="", crossed=(base, other))
    return parse_strategy(Reply(text=crossed(prompt, session, MENU, "offline", code), usage=Usage()))


def test_a_child_joins_the_strategies_of_both():
    stated = cross(grown(("warps",), ("vectors",)), "r1", "r2")
    assert stated.name == "warps-with-vectors"
    assert stated.statement == "Keep warps of r1, and take from r2: Do vectors."
    assert stated.combines == ("warps", "vectors")


def test_a_strategy_that_excludes_one_of_the_faster_kernel_is_left_out_and_the_statement_says_so():
    stated = cross(grown(("warps",), ("ctas", "vectors")), "r1", "r3")
    assert stated.combines == ("warps", "vectors")
    assert stated.statement == (
        "Keep warps of r1, and take from r3: Do vectors. ctas of r3 excludes warps of r1, as each takes the "
        "other's place: the faster r1 keeps its own."
    )


@pytest.mark.parametrize(
    ("lines", "pair", "reason"),
    [
        ((("warps",), ("ctas",)), ("r1", "r2"), "ctas of r2 excludes warps of r1, as each takes the other's place"),
        ((("vectors",), ("coalesced",)), ("r1", "r2"), "r1 does already what coalesced of r2 would bring"),
        (
            (("coalesced",), ("vectors", "once")),
            ("r1", "r3"),
            "r3 does already what coalesced of r1 does: their child would be r3 again",
        ),
        (
            (("warps",), ("vectors",), ("warps", "vectors")),
            ("r1", "r2"),
            "r4 carries out the strategies of r1 and r2 together already",
        ),
        ((("warps",),), ("r1", "r0"), "r0 carries out no strategy that r1 lacks"),
        ((("warps",),), ("r1", "r9"), "the session has no kernel of r9"),
    ],
)  # fmt: skip
def test_where_no_new_child_is_possible_the_reason_is_named(lines, pair, reason):
    with pytest.raises(Declined, match=reason):
        cross(grown(*lines), *pair)


def test_another_authors_kernel_is_declined():
    session = replace(session_of(Relation.FIRST))
    with pytest.raises(Declined, match="one is by test"):
        cross(session, "r0", "r0")
