"""Replies in words: strategies that an author states, and strategies restated from the code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Optimisation
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS, ReplyFault, Unusable
from cutegen_nb.prompting.strategy_reply import (
    NoStrategy,
    StatedAlignment,
    StatedStrategy,
    parse_alignment,
    parse_strategy,
    strategy_name,
)

LINES = """Strategy: narrow-tiles-two-stages
Statement: Load the tiles of 128 × 32 by cp.async into two stages. 128 threads a CTA.
Combines: narrow-tiles, two-stage-copies
Brings: pipelined, shared-tiles
Moves: latency_ms down, warp_instructions up
"""
STATED = StatedStrategy(
    name="narrow-tiles-two-stages",
    statement="Load the tiles of 128 × 32 by cp.async into two stages. 128 threads a CTA.",
    brings=(Optimisation.PIPELINED, Optimisation.SHARED_TILES),
    effects=(
        ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),
        ExpectedEffect(counter="warp_instructions", direction=Direction.UP),
    ),
    combines=("narrow-tiles", "two-stage-copies"),
)


def reply(text: str, finish: str = "stop", reasoning: str = "") -> Reply:
    return Reply(text=text, usage=Usage(), finish_reason=finish, reasoning=reasoning)


def stated(text: str, **options) -> StatedStrategy:
    found = parse_strategy(reply(text), **options)
    assert isinstance(found, StatedStrategy), found
    return found


@pytest.mark.parametrize(
    "text",
    [
        LINES,
        f"```\n{LINES}```\n",
        f"```text\n{LINES}```\n\nI hope this helps. Moves: none.",
        f"<think>Strategy: other</think>\n{LINES}",
        LINES.replace("\n", "\r\n"),
        "\n".join(f"- **{line.replace(': ', ':** ', 1)}" for line in LINES.splitlines()),
        "\n".join(f"{n}. `{line.replace(':', ':`', 1)}" for n, line in enumerate(LINES.splitlines(), 1)),
        "\n\n".join("### " + line.replace(": ", "\n\n", 1) for line in LINES.splitlines()),
        "Here it is.\n\n" + LINES.replace(" by cp.async", "\n  by cp.async"),
        LINES.replace("narrow-tiles-two-stages", "`Narrow tiles, two stages`".replace(",", "")),
        LINES.replace("narrow-tiles, two-stage-copies", "\n- r3: narrow-tiles\n- from r4: Two stage copies"),
        LINES.replace("pipelined, shared-tiles", "`pipelined` (two stages) and `shared-tiles`"),
        LINES.replace("latency_ms down, warp_instructions up", "latency_ms ↓; warp instructions up 5 %"),
    ],
)  # fmt: skip
def test_the_five_lines_are_read_in_any_dress(text):
    assert stated(text) == STATED


def test_name_and_statement_may_stand_on_one_line_as_in_requests():
    found = stated("Strategy: row-in-registers: Keep the row in registers between the passes.")
    assert (found.name, found.statement) == (
        "row-in-registers",
        "Keep the row in registers between the passes.",
    )
    assert found.combines == found.brings == found.effects == ()


@pytest.mark.parametrize("none", ["none", "None.", "n/a", "-", "", "Nothing"])
def test_none_is_an_empty_list(none):
    found = stated(f"Strategy: a-b\nStatement: Do.\nCombines: {none}\nBrings: {none}\nMoves: {none}\n")
    assert found.combines == found.brings == found.effects == ()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("vectorise-128", (Optimisation.VECTORS,)),
        ("vectors 128", (Optimisation.VECTORS,)),
        ("coalesced accesses and conflict-free", (Optimisation.COALESCED, Optimisation.CONFLICT_FREE)),
        ("coalesced, coalesced", (Optimisation.COALESCED,)),
        ("no-split-reduction, zebra", ()),
        ("row-read-once\nwarp-a-row", (Optimisation.ROW_KEPT, Optimisation.WARP_A_ROW)),
    ],
)
def test_optimisations_are_known_by_their_names_and_others_ignored(names, expected):
    assert stated(f"Strategy: a-b\nStatement: Do.\nBrings: {names}\n").brings == expected


def test_a_direction_holds_for_the_counters_listed_before_it():
    found = stated(
        "Strategy: a-b\nStatement: Do.\nMoves: gmem_requests, gmem_load_sectors down; barriers up, branches\n"
    )
    assert [(item.counter, item.direction) for item in found.effects] == [
        ("gmem_requests", Direction.DOWN),
        ("gmem_load_sectors", Direction.DOWN),
        ("barriers", Direction.UP),
    ]


def test_a_strategy_stated_twice_is_one_and_its_last_statement_counts():
    found = stated("Strategy: a-b\nStatement: First thought.\n\nStrategy: A b\nStatement: Better.\n")
    assert (found.name, found.statement) == ("a-b", "Better.")


@pytest.mark.parametrize(
    "text",
    [
        "Strategy: none — because r5 has no figure below r3's.",
        "**Strategy:** none — because r5 has no figure below r3's.",
        "Strategy: None. Because r5 has no figure below r3's.".replace(". Because", " – because"),
        "Strategy: nothing - r5 has no figure below r3's.".replace(" - ", " – "),
    ],
)
def test_a_cross_may_say_that_the_other_kernel_has_nothing_to_give(text):
    found = parse_strategy(reply(text), may_decline=True)
    assert isinstance(found, NoStrategy), found
    assert found.reason.rstrip(".") == "r5 has no figure below r3's"
    refused = parse_strategy(reply(text))
    assert isinstance(refused, Unusable)


def test_a_strategy_that_declines_without_a_reason_is_no_answer():
    found = parse_strategy(reply("Strategy: none"), may_decline=True)
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.REFUSED


@pytest.mark.parametrize(
    ("text", "finish", "fault", "words"),
    [
        ("", "stop", ReplyFault.EMPTY, "`Strategy:`, `Statement:`, `Combines:`, `Brings:` and `Moves:`"),
        ("<think>hm", "stop", ReplyFault.REASONING_ONLY, "2 characters of reasoning"),
        (LINES, "length", ReplyFault.TRUNCATED, "only the five lines"),
        (LINES, "content_filter", ReplyFault.REFUSED, "State the strategy that is asked for."),
        ("One could tile the rows.", "stop", ReplyFault.MISSING_LINE, "no line `Strategy:`"),
        ("Strategy: a-b\nMoves: barriers up", "stop", ReplyFault.MISSING_LINE, "no line `Statement:`"),
        ("Strategy: a-b\nStatement:\nBrings: none", "stop", ReplyFault.MISSING_LINE, "no line `Statement:`"),
        ("Strategy: a-b\nStatement: x.\nStrategy: c-d", "stop", ReplyFault.SEVERAL_STRATEGIES, "a-b, c-d"),
        ("Strategy: already done\nStatement: x.", "stop", ReplyFault.REFUSED, "states no strategy"),
        ("Strategy: cannot apply — because", "stop", ReplyFault.REFUSED, "states no strategy"),
        (f"Strategy: a-b\nStatement: {'x ' * 2100}", "stop", ReplyFault.OVER_LONG, "may have 4,000"),
        ("x" * (MAX_REPLY_CHARACTERS + 1), "stop", ReplyFault.OVER_LONG, "at most 1,500,000"),
        ("I'm sorry, I can't help with that.", "stop", ReplyFault.REFUSED, "State the strategy"),
        ('{"name": "write", "arguments": {}}', "stop", ReplyFault.TOOL_CALL, "there are none"),
        ("Strategy: a\ud800", "stop", ReplyFault.UNREADABLE, "Use plain text."),
    ],
)
def test_each_useless_reply_has_its_fault_and_says_what_to_send(text, finish, fault, words):
    found = parse_strategy(reply(text, finish))
    assert isinstance(found, Unusable)
    assert found.fault is fault
    assert words in found.reason
    assert len(found.reason) < 400


DONE = """Done: Each of the 256 threads loads 4 floats by one 128-bit access; other lengths take the scalar loop.
Carries: vectors-128, coalesced
Not done: stores stay scalar.
"""


@pytest.mark.parametrize(
    "text",
    [
        DONE,
        f"```\n{DONE}```",
        "\n".join(f"* **{line.replace(': ', ':** ', 1)}" for line in DONE.splitlines()),
        DONE.replace("Not done:", "NOT DONE –"),
    ],
)
def test_an_alignment_is_three_lines_in_any_dress(text):
    assert parse_alignment(reply(text)) == StatedAlignment(
        statement="Each of the 256 threads loads 4 floats by one 128-bit access; other lengths take the scalar loop.",
        carries=(Optimisation.VECTORS, Optimisation.COALESCED),
        not_done="stores stay scalar.",
    )


@pytest.mark.parametrize("none", ["none", "None.", "Nothing", "n/a", ""])
def test_nothing_left_undone_is_empty(none):
    found = parse_alignment(reply(f"Done: It tiles.\nCarries: none\nNot done: {none}\n"))
    assert found == StatedAlignment(statement="It tiles.")


def test_an_alignment_without_its_first_line_names_the_three():
    found = parse_alignment(reply("Not done: stores stay scalar."))
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.MISSING_LINE
    assert "`Done:`, `Carries:` and `Not done:`" in found.reason


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Row in registers", "row-in-registers"),
        ("  **Vectorise_128!**", "vectorise-128"),
        ("Größe der Kachel", "groe-der-kachel"),
        ("a" * 60, "a" * 40),
        ("one two three four five six seven eight nine", "one-two-three-four-five-six-seven-eight"),
        ("…", ""),
    ],
)
def test_names_are_made_alike(text, name):
    assert strategy_name(text) == name
    assert strategy_name(name) == name


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["Strategy:", "Statement: x", "Combines:", "Brings: coalesced", "Moves: barriers up", "Done: y",
             "Not done:", "none", " — because ", "\n", "\n\n", "```\n", "- ", "**", "\0", "\u202e", "<think>", "a-b"]
        ) | st.text(max_size=6),
        max_size=16,
    ).map("".join)
)  # fmt: skip
def test_any_words_are_read_or_have_a_reason(text):
    for found in (parse_strategy(reply(text)), parse_alignment(reply(text))):
        if isinstance(found, Unusable):
            assert found.reason.endswith(".")
        else:
            assert found.statement.strip()
            assert "\n" not in found.statement


@pytest.mark.timeout(120)  # a second at most on an idle machine; hours where a pattern backtracks
@pytest.mark.parametrize("piece", ["*", "- ", "Strategy:", "Statement: x\n", "#", "`", "1. ", "\n", "[("])
def test_a_model_that_repeats_itself_is_read_without_backtracking(piece):
    text = (piece * (MAX_REPLY_CHARACTERS // len(piece)))[: MAX_REPLY_CHARACTERS - 400]
    for read in (parse_strategy, parse_alignment):
        found = read(reply(f"{text}\n{LINES}"))
        assert isinstance(found, Unusable | StatedStrategy)
