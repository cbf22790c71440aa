"""The failure of an author's last request is remembered until it answers again."""

import asyncio

import pytest

from cutegen_nb.core.errors import Declined, Unreachable
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.loop.campaign.watched_author import WatchedAuthor
from cutegen_nb.testing.examples import session_of
from cutegen_nb.testing.scripted import ScriptedModel

PROMPT = Prompt(system="", user="", digest="")


def ask(author):
    return asyncio.run(author.write(PROMPT, session_of(Relation.FIRST), lambda _: None))


def test_a_reply_forgets_the_failure_before_it():
    author = WatchedAuthor(ScriptedModel([Unreachable("no answer"), "a reply"]))
    with pytest.raises(Unreachable):
        ask(author)
    assert isinstance(author.failure, Unreachable)
    assert ask(author).text == "a reply"
    assert author.failure is None


def test_an_author_that_has_nothing_more_declines():
    author = WatchedAuthor(ScriptedModel([]))
    with pytest.raises(Declined):
        ask(author)
    assert str(author.failure) == "the script has no more answers"
