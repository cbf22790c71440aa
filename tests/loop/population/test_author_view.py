"""The author of a slot sees the whole session, and not the slot's own."""

import asyncio

from cutegen_nb.core.round import Prompt
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.loop.population.author_view import AuthorOfWhole
from cutegen_nb.testing.examples import relu_facts, session_of, strategies
from cutegen_nb.testing.scripted import ScriptedModel


class CountingModel(ScriptedModel):
    async def write(self, prompt, session, progress):
        self.rounds = len(session.rounds)
        return await super().write(prompt, session, progress)


def test_rounds_are_counted_as_a_person_counts_them():
    author = CountingModel(["a reply"], menu=strategies())
    whole = session_of(Relation.FIRST, Relation.FASTER)
    view = AuthorOfWhole(author, lambda: whole)
    slot = session_of(Relation.FIRST)
    prompt = Prompt(system="", user="", digest="")
    reply = asyncio.run(view.write(prompt, slot, lambda _: None))
    assert (reply.text, author.rounds, view.name) == ("a reply", 2, author.name)
    assert view.menu(relu_facts()) == strategies()
