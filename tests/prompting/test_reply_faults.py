"""Faults of a reply, and the reasoning before an answer."""

from __future__ import annotations

import pytest

from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.prompting.parse import Proposal, parse_reply
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS, ReplyFault, Unusable, split_thoughts

FILE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"


def parsed(text: str, parent: str | None = None, finish: str = "stop") -> Proposal | Unusable:
    return parse_reply(Reply(text=text, usage=Usage(), finish_reason=finish), parent)


def test_each_mark_of_reasoning_is_known():
    for text in (
        "<thinking>a</thinking>b",
        "\n<THINK>a</THINK>b",
        "<think></think><think>a</think>b",
        "a</think>b",
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b<|return|>",
    ):
        assert split_thoughts(text) == ("a", "b")
    assert split_thoughts("x <think>a</think>") == ("", "x <think>a</think>")


@pytest.mark.parametrize(
    ("text", "finish", "fault"),
    [
        ("", "stop", ReplyFault.EMPTY),
        (" \n\t", "stop", ReplyFault.EMPTY),
        ("", "length", ReplyFault.TRUNCATED),
        ("A kernel could tile the rows.", "stop", ReplyFault.PROSE),
        ("I'm sorry, I can't help with that.", "stop", ReplyFault.REFUSED),
        ("anything", "content_filter", ReplyFault.REFUSED),
        ("No.", "refusal", ReplyFault.REFUSED),
        ("```python\nimport torch\nclass ModelNew(", "length", ReplyFault.TRUNCATED),
        ("```python\nimport torch\nclass ModelNew(", "stop", ReplyFault.TRUNCATED),
        ("```python\nimport to", "incomplete", ReplyFault.TRUNCATED),
        ("```python\nx = 1\n```", "stop", ReplyFault.NO_MODEL_NEW),
        ("x" * (MAX_REPLY_CHARACTERS + 1), "stop", ReplyFault.OVER_LONG),
        (f"```python\n{FILE}# \ud800\n```", "stop", ReplyFault.UNREADABLE),
        (f"```python\n{FILE}# \0\n```", "stop", ReplyFault.UNREADABLE),
        ('{"tool_calls": [{"name": "write_file"}]}', "tool_calls", ReplyFault.TOOL_CALL),
        ('```json\n{"name": "write_file", "arguments": {"path": "a"}}\n```', "stop", ReplyFault.TOOL_CALL),
        ('[{"function": {"name": "ls"}}]', "stop", ReplyFault.TOOL_CALL),
        ("<tool_call>\n{}\n</tool_call>", "stop", ReplyFault.TOOL_CALL),
        ("<function=write_file><parameter=path>a", "stop", ReplyFault.TOOL_CALL),
        ('{"answer": 42}', "stop", ReplyFault.PROSE),
        ("<think>It should tile", "stop", ReplyFault.REASONING_ONLY),
        ("<think>It should tile</think>  \n", "length", ReplyFault.REASONING_ONLY),
        (f"```python\n{FILE}x = '\x1b[2J'\n```", "stop", ReplyFault.UNREADABLE),
        (f"```python\n{FILE}x = 1 \u202e# reversed\n```", "stop", ReplyFault.UNREADABLE),
    ],
)
def test_each_useless_reply_has_its_fault_and_a_reason(text, finish, fault):
    found = parsed(text, finish=finish)
    assert isinstance(found, Unusable)
    assert found.fault is fault
    assert found.reason.endswith(".")
    assert len(found.reason) < 400


@pytest.mark.parametrize(
    ("parent", "wanted"),
    [
        (None, "None of the 1 code blocks defines class ModelNew. Send the whole file in one block."),
        (
            FILE,
            "None of the 1 code blocks is an edit or defines class ModelNew. Send the edits, each between its SEARCH and REPLACE lines, or the whole file in one block.",
        ),
    ],
)
def test_what_is_asked_for_again_depends_on_whether_there_is_a_file(parent, wanted):
    found = parsed("```python\nx = 1\n```", parent=parent)
    assert isinstance(found, Unusable)
    assert found.reason == wanted
