from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.authors.manual import ManualAuthor, wanted
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.round import Prompt, Reply
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.prompting.parse import parse_reply
from cutegen_nb.prompting.reply_faults import MAX_REPLY_CHARACTERS, ReplyFault
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
    return ManualAuthor(
        folder=folder, library=shipped_library(), say=told.append, paste=paste, poll_s=0.01, settled_s=0.05
    )


async def write(author: ManualAuthor, asked: Prompt) -> Reply:
    return await asyncio.wait_for(author.write(asked, SESSION, lambda text: None), timeout=60)


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


@pytest.mark.long
def test_a_reply_that_still_grows_is_waited_for(tmp_path):
    path = tmp_path / "relu-0-reply.md"
    author = ManualAuthor(
        folder=tmp_path, library=shipped_library(), say=lambda text: None, poll_s=0.02, settled_s=1.5
    )

    async def play() -> str:
        task = asyncio.ensure_future(write(author, prompt()))
        for length in range(1, 6):
            path.write_text("x" * length)
            await asyncio.sleep(0.1)
        path.write_text("yyyyy")  # as long as before, and written again
        await asyncio.sleep(0.2)
        assert not task.done()
        return (await task).text

    assert asyncio.run(play()) == "yyyyy"


def test_a_file_that_is_made_empty_first_and_filled_later_is_waited_for(tmp_path):
    path = tmp_path / "relu-0-reply.md"

    async def play() -> str:
        task = asyncio.ensure_future(write(manual(tmp_path), prompt()))
        for text in ("", " \n"):
            path.write_text(text)
            await asyncio.sleep(0.15)
            assert not task.done()
        path.write_text("the reply")
        return (await task).text

    assert asyncio.run(play()) == "the reply"


@pytest.mark.parametrize("name", ["relu-0-reply.txt", "relu-0-reply.py", "relu-0-reply.md.txt"])
def test_a_suffix_that_an_editor_chose_is_taken_too(tmp_path, name):
    (tmp_path / name).write_text("the reply")
    assert asyncio.run(write(manual(tmp_path), prompt())).text == "the reply"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_a_reply_in_any_unicode_encoding_is_read(tmp_path, encoding):
    text = "Rationale: “fewer” loads, 2×.\n```python\nclass ModelNew:\n    pass\n```\n"
    (tmp_path / "relu-0-reply.md").write_bytes(text.encode(encoding))
    assert asyncio.run(write(manual(tmp_path), prompt())).text == text


def test_a_file_that_may_not_be_read_is_told_once_and_waited_for(tmp_path, monkeypatch):
    said: list[str] = []
    path = tmp_path / "relu-0-reply.md"
    path.write_text("the reply")
    opened = Path.open
    locked = True

    def refuse(self, *arguments, **options):
        if self == path and locked:
            raise PermissionError(13, "Permission denied")
        return opened(self, *arguments, **options)

    monkeypatch.setattr(Path, "open", refuse)

    async def play() -> str:
        nonlocal locked
        task = asyncio.ensure_future(write(manual(tmp_path, said), prompt()))
        await asyncio.sleep(0.3)
        assert not task.done()
        locked = False
        return (await task).text

    assert asyncio.run(play()) == "the reply"
    assert [text for text in said if "Permission denied): check its permissions" in text] == said


def test_a_folder_under_the_reply_s_name_is_no_reply(tmp_path):
    (tmp_path / "relu-0-reply.md").mkdir()
    (tmp_path / "relu-0-reply.txt").write_text("the reply")
    assert asyncio.run(write(manual(tmp_path), prompt())).text == "the reply"


def test_a_huge_file_is_read_no_further_than_a_reply_may_go(tmp_path):
    (tmp_path / "relu-0-reply.md").write_text("x" * 6 * MAX_REPLY_CHARACTERS)
    reply = asyncio.run(write(manual(tmp_path), prompt()))
    assert MAX_REPLY_CHARACTERS < len(reply.text) < 5 * MAX_REPLY_CHARACTERS
    assert parse_reply(reply, None).fault is ReplyFault.OVER_LONG


def test_thoughts_that_were_copied_along_are_kept_apart(tmp_path):
    (tmp_path / "relu-0-reply.md").write_text("<think>hm</think>the reply")
    reply = asyncio.run(write(manual(tmp_path), prompt()))
    assert (reply.text, reply.reasoning) == ("the reply", "hm")


def test_a_person_is_told_what_is_wanted_and_where(tmp_path):
    said: list[str] = []

    async def play() -> None:
        asked = replace(prompt(), purpose="repair")
        task = asyncio.ensure_future(write(manual(tmp_path, said), asked))
        await asyncio.sleep(0.1)
        (tmp_path / "relu-0-reply.md").write_text("the reply")
        await task

    asyncio.run(play())
    (told,) = said
    assert told == (
        f"r0 wants a repair of its kernel, which did not pass.\nThe prompt (16 characters) is in {tmp_path / 'relu-0.md'}\n"
        f"Put the whole reply into {tmp_path / 'relu-0-reply.md'}"
    )


@pytest.mark.parametrize(
    ("purpose", "strategy", "said"),
    [
        ("generate", None, "a first kernel"),
        ("optimise", examples.strategies()[0], "coalesce"),
        ("cross", None, "words only: one strategy out of those of two kernels"),
        ("invent", None, "words only: a new strategy for a kernel"),
        ("align", examples.strategies()[0], "words only: what the kernel really does"),
        (
            "reply",
            examples.strategies()[0],
            "the same reply again, in a form that can be read; the prompt says what was wrong",
        ),
    ],
)
def test_each_kind_of_request_is_named_to_the_person(purpose, strategy, said):
    assert wanted(replace(prompt(), purpose=purpose, strategy=strategy)) == said


def test_a_diagnosis_is_part_of_the_repair_and_asks_the_person_nothing(tmp_path):
    said: list[str] = []
    reply = asyncio.run(write(manual(tmp_path, said), replace(prompt(), purpose="diagnose")))
    assert (reply.text, reply.notes) == ("", ("the diagnosis is part of the next request, the repair",))
    assert said == list(tmp_path.iterdir()) == []


def test_the_prompt_that_waits_is_known_meanwhile(tmp_path):
    author = manual(tmp_path)

    async def play() -> None:
        task = asyncio.ensure_future(write(author, prompt()))
        await asyncio.sleep(0.1)
        assert author.asked == prompt()
        (tmp_path / "relu-0-reply.md").write_text("the reply")
        await task
        assert author.asked is None

    asyncio.run(play())


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
    (tmp_path / "relu-0-reply.md").write_bytes(b"```python\nclass ModelNew: # \xff\n```")
    reply = asyncio.run(write(manual(tmp_path), prompt()))
    assert parse_reply(reply, None).fault is ReplyFault.UNREADABLE
