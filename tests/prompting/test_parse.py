from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cutegen_nb.core.round import Prediction, Reply, StrategyEnd, Usage
from cutegen_nb.core.strategy import Direction
from cutegen_nb.prompting.parse import Proposal, StrategyOver, parse_reply
from cutegen_nb.prompting.reply_faults import ReplyFault, Unusable

FILE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def parsed(text: str, parent: str | None = None, finish: str = "stop") -> Proposal | Unusable:
    return parse_reply(Reply(text=text, usage=Usage(), finish_reason=finish), parent)


def test_a_whole_file_comes_with_its_rationale_and_prediction():
    found = parsed(
        f"Rationale: Fewer loads.\nPredicted effect: sectors down 75%, 1.3x\n\n```python\n{FILE}```\nBye"
    )

    assert found == Proposal(
        source=FILE,
        rationale="Fewer loads.\nPredicted effect: sectors down 75%, 1.3x",
        prediction=Prediction(
            text="sectors down 75%, 1.3x",
            counter="gmem_sectors",
            direction=Direction.DOWN,
            change_fraction=0.75,
            speedup=1.3,
        ),
    )


def test_of_several_blocks_the_one_with_model_new_is_the_file():
    found = parsed(f"Run:\n```bash\npip list\n```\n```python\nx = 1\n```\n```python\n{FILE}```")
    assert isinstance(found, Proposal)
    assert found.source == FILE


def test_two_different_files_are_refused_and_the_same_file_twice_is_not():
    twice = f"```python\n{FILE}```\nor\n```python\n{FILE}```"
    assert isinstance(parsed(twice), Proposal)
    found = parsed(twice.replace("    pass\n```", "    x = 1\n```", 1))
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.SEVERAL_FILES


def test_a_file_that_holds_fences_is_read_whole_inside_a_longer_fence():
    inner = FILE + 'DOC = """\n```\ncode\n```\n"""\n'
    found = parsed(f"````python\n{inner}````")
    assert isinstance(found, Proposal)
    assert found.source == inner


def test_a_bare_file_without_a_fence_is_accepted():
    found = parsed(FILE)
    assert isinstance(found, Proposal)
    assert found.source == FILE


def test_thoughts_before_the_answer_are_left_out():
    found = parsed(f"<think>class ModelNew in a ```python block</think>```python\n{FILE}```")
    assert isinstance(found, Proposal)
    assert found.rationale == ""


def test_reasoning_kept_apart_by_the_server_counts_as_reasoning():
    reply = Reply(text="", usage=Usage(), finish_reason="length", reasoning="hm" * 10)
    found = parse_reply(reply, None)
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.REASONING_ONLY
    assert "20 characters of reasoning" in found.reason


def test_control_characters_in_the_words_alone_do_no_harm():
    assert isinstance(parsed(f"\x1b[1mRationale\x1b[0m\n```python\n{FILE}```"), Proposal)


def test_windows_line_ends_are_read():
    found = parsed(f"```python\r\n{FILE}```".replace("\n", "\r\n").replace("\r\r", "\r"))
    assert isinstance(found, Proposal)
    assert found.source == FILE


def test_a_closed_file_before_the_cut_is_used():
    found = parsed(f"```python\n{FILE}```\nThis kernel is", finish="length")
    assert isinstance(found, Proposal)


def test_edits_apply_to_the_parent():
    text = "Rationale: x.\n```\n<<<<<<< SEARCH\n    pass\n=======\n    size = 1\n>>>>>>> REPLACE\n```\n"
    found = parsed(text, parent=FILE)
    assert isinstance(found, Proposal)
    assert found.source == FILE.replace("    pass", "    size = 1")
    assert found.rationale == "x."


def test_edits_without_a_file_are_refused():
    found = parsed("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n")
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.EDIT_MISMATCH


def test_edits_that_were_cut_off_are_not_applied_in_part():
    text = "<<<<<<< SEARCH\n    pass\n=======\n    size = 1\n>>>>>>> REPLACE\n<<<<<<< SEARCH\nimp"
    found = parsed(text, parent=FILE, finish="length")
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.TRUNCATED
    assert isinstance(parsed(text, parent=FILE), Unusable)


def ended(text: str) -> StrategyOver | Proposal | Unusable:
    return parse_reply(Reply(text=text, usage=Usage()), FILE, may_end=True)


@pytest.mark.parametrize(
    ("text", "end", "reason"),
    [
        (
            "Strategy: already done — because line 9 loads 128 bits.",
            StrategyEnd.ALREADY_DONE,
            "line 9 loads 128 bits.",
        ),
        ("Strategy: cannot apply — because K is 32.", StrategyEnd.CANNOT_APPLY, "K is 32."),
        ("**Strategy:** Already done - line 9 does it", StrategyEnd.ALREADY_DONE, "line 9 does it"),
        ("> `Strategy: cannot apply`: K is 32.", StrategyEnd.CANNOT_APPLY, "K is 32."),
        ("strategy: cannot apply. K is\n32, no more.", StrategyEnd.CANNOT_APPLY, "K is 32, no more."),
        (
            "I looked.\n\nStrategy: already done, because of `x`.\n\nMore.",
            StrategyEnd.ALREADY_DONE,
            "of `x`.",
        ),
        (
            "Rationale: none.\nStrategy: already done — because line 9.\nPredicted effect: none",
            StrategyEnd.ALREADY_DONE,
            "line 9.",
        ),
        (
            "<think>Strategy: already done — no</think>Strategy: cannot apply — K.",
            StrategyEnd.CANNOT_APPLY,
            "K.",
        ),
    ],
)
def test_a_strategy_may_be_ended_in_a_line_with_its_reason(text, end, reason):
    assert ended(text) == StrategyOver(end=end, reason=reason)


def test_a_strategy_is_not_ended_where_the_request_did_not_offer_it():
    found = parsed("Strategy: already done — because line 9.", parent=FILE)
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.PROSE


@pytest.mark.parametrize(
    "text", ["Strategy: already done", "Strategy: cannot apply — because\n", "**Strategy: already done.**"]
)
def test_an_ended_strategy_without_a_reason_is_asked_for_one(text):
    found = ended(text)
    assert isinstance(found, Unusable)
    assert found.fault is ReplyFault.NO_REASON
    assert "gives no reason. Add it in a sentence" in found.reason


def test_code_counts_before_words_that_end_the_strategy():
    found = ended(f"Strategy: already done — because I did it below.\n```python\n{FILE}```")
    assert isinstance(found, Proposal)
    edited = ended(
        "Strategy: already done — see.\n<<<<<<< SEARCH\n    pass\n=======\n    x = 1\n>>>>>>> REPLACE\n"
    )
    assert isinstance(edited, Proposal)


def test_a_long_reason_is_cut():
    found = ended(f"Strategy: cannot apply — because {'K is small. ' * 100}")
    assert isinstance(found, StrategyOver)
    assert len(found.reason) == 400


PIECES = st.sampled_from(
    ["```python\n", "```\n", "~~~\n", "<think>", "</think>", "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n",
     "class ModelNew:\n", "    pass\n", "Rationale: x\n", "Predicted effect: ", "{", '"arguments":', "\0", "\ud800",
     "\r\n", "\x1b", "\u202e", "<|channel|>final<|message|>", "I can't", "\n"]
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PIECES | st.text(max_size=8), max_size=14).map("".join),
    st.sampled_from(["stop", "length", "incomplete", "tool_calls", "content_filter", "", "anything"]),
    st.none() | st.just(FILE),
)
def test_any_reply_is_a_proposal_or_has_a_reason(text, finish, parent):
    found = parsed(text, parent, finish)
    if isinstance(found, Proposal):
        assert found.source.endswith("\n")
        found.source.encode()
    else:
        assert found.reason
        found.reason.encode(errors="surrogatepass")
