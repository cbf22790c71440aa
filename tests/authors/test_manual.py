from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cutegen_nb.authors.manual import ManualAuthor
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.round import Prompt, Reply
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.testing import examples

SESSION = Session(
    name="relu",
    problem=examples.relu_problem(),
    facts=examples.relu_facts(),
    device=examples.simulated_device(),
    author="manual",
    budget=Budget(),
    created_at="2026-01-01T00:00:00+00:00",
)


def prompt(user: str = "write it") -> Prompt:
    return Prompt(system="contract", user=user, digest="d")


def manual(folder: Path, said: list[str] | None = None, paste=None) -> ManualAuthor:
    told = [] if said is None else said
    return ManualAuthor(folder=folder, library=shipped_library(), say=told.append, paste=paste, poll_s=0.01)


async def write(author: ManualAuthor, asked: Prompt) -> Reply:
    return await asyncio.wait_for(author.write(asked, SESSION, lambda text: None), timeout=5)


def test_the_prompt_goes_to_a_file_and_the_reply_comes_from_the_one_beside_it(tmp_path):
    said: list[str] = []
    author = manual(tmp_path / "prompts", said)

    async def play() -> Reply:
        task = asyncio.ensure_future(write(author, prompt()))
        await asyncio.sleep(0.1)
        assert not task.done()
        (tmp_path / "prompts" / "relu-0-reply.md").write_text("the reply")
        return await task

    assert asyncio.run(play()).text == "the reply"
    assert "contract" in (tmp_path / "prompts" / "relu-0.md").read_text()
    assert "relu-0-reply.md" in said[0]


def test_a_second_request_of_the_round_has_its_own_files(tmp_path):
    author = manual(tmp_path)
    (tmp_path / "relu-0-reply.md").write_text("one")
    (tmp_path / "relu-0-2-reply.md").write_text("two")

    async def play() -> list[str]:
        return [(await write(author, prompt(text))).text for text in ("first", "second")]

    assert asyncio.run(play()) == ["one", "two"]


def test_after_a_crash_the_same_prompt_takes_the_reply_that_is_there(tmp_path):
    (tmp_path / "relu-0-reply.md").write_text("one")
    assert asyncio.run(write(manual(tmp_path), prompt())).text == "one"
    assert asyncio.run(write(manual(tmp_path), prompt())).text == "one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["relu-0-reply.md", "relu-0.md"]


def test_a_reply_that_still_grows_is_waited_for(tmp_path):
    path = tmp_path / "relu-0-reply.md"
    author = ManualAuthor(folder=tmp_path, library=shipped_library(), say=lambda text: None, poll_s=0.1)

    async def play() -> str:
        task = asyncio.ensure_future(write(author, prompt()))
        for length in range(1, 6):
            path.write_text("x" * length)
            await asyncio.sleep(0.05)
        return (await task).text

    assert asyncio.run(play()) == "xxxxx"


def test_a_pasted_reply_counts_too_and_the_end_of_input_does_not(tmp_path):
    async def paste() -> str | None:
        return "pasted"

    async def ended() -> str | None:
        return None

    assert asyncio.run(write(manual(tmp_path / "a", paste=paste), prompt())).text == "pasted"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "relu-0-reply.md").write_text("from the file")
    assert asyncio.run(write(manual(tmp_path / "b", paste=ended), prompt())).text == "from the file"


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigurationError, match=r"cannot write the prompt in .*--store"):
        asyncio.run(write(manual(tmp_path / "file" / "prompts"), prompt()))


def test_bytes_that_are_no_text_reach_the_parser_as_an_unreadable_reply(tmp_path):
    from cutegen_nb.prompting.parse import ReplyFault, parse_reply

    (tmp_path / "relu-0-reply.md").write_bytes(b"```python\nclass ModelNew: # \xff\n```")
    reply = asyncio.run(write(manual(tmp_path), prompt()))
    assert parse_reply(reply, None).fault is ReplyFault.UNREADABLE
