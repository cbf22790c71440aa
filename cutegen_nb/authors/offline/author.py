"""Offline author: plans kernels from the traced graph and writes them from templates."""

from __future__ import annotations

from functools import cache

from cutegen_nb.authors.offline.crossing import crossed
from cutegen_nb.authors.offline.edits import check_own, is_edited, with_edits
from cutegen_nb.authors.offline.lineage import lineage, steps_of, words_before
from cutegen_nb.authors.offline.matmul.writer import MatmulWriter
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.authors.offline.requests import followed, sentence, settings_in
from cutegen_nb.authors.offline.same_code import same_code, twin
from cutegen_nb.authors.offline.words import restated
from cutegen_nb.authors.offline.writers import Writer
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import DTYPE_BYTES
from cutegen_nb.core.library import Library
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy

WRITERS: tuple[Writer, ...] = (MatmulWriter(), OperatorsWriter())
"""Kernel writers in order of preference; the last one takes every remaining graph."""


class OfflineAuthor:
    """Author port over hand-written templates."""

    name = "offline"

    def __init__(self, writers: tuple[Writer, ...] = WRITERS) -> None:
        self._writers = writers

    def menu(self, facts: ProblemFacts, library: Library = ()) -> tuple[Strategy, ...]:
        """List the strategies for this problem, in order. Raises Declined with one sentence."""
        return self._writer(facts, library).menu(facts, library)

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Write the parent's kernel with one more strategy, and with what the person's words ask for.

        The rationale says which of the words were followed. A request to cross or to restate strategies is
        answered in words. Raises Declined.
        """
        if prompt.purpose == "align":
            return Reply(text=restated(prompt.strategy), usage=Usage())
        if prompt.purpose == "invent":
            raise Declined("the offline author invents no strategy: it has its menu only")
        if prompt.purpose == "cross":
            return Reply(text=self._crossed(prompt, session), usage=Usage())
        if prompt.purpose not in ("generate", "optimise"):
            raise Declined("the offline author cannot repair a kernel: it would write the same file again")
        if prompt.parent is not None:
            check_own(prompt.parent, session, self.name)
        progress("writing the kernel from templates")
        return self._written(prompt, session)

    def _written(self, prompt: Prompt, session: Session) -> Reply:
        """Write the file. Raises Declined."""
        strategy = prompt.strategy
        before = lineage(prompt.parent, session)
        applied = (*before, *self._new_steps(strategy, before, session)) if strategy else before
        writer = self._writer(session.facts, session.problem.library)
        written = writer.write(session.problem, session.facts, applied)
        source, kept = _as_before(written.source, prompt, session, writer), ""
        if strategy is not None and prompt.parent and is_edited(prompt.parent, session):
            bare = writer.write(session.problem, session.facts, before).source
            unedited = _as_before(bare, prompt, session, writer)
            source, place = with_edits(unedited, source, prompt.parent.source)
            if place:
                reason = f"its change of {place} and a person's edit there cannot both be made"
                return Reply(text=_ended(reason), usage=Usage())
            kept = "The person's edits are kept."
        # Today's words come last: they may change a line that an earlier edit is about.
        source, answer = _as_asked(source, prompt, session, writer)
        if strategy is not None and prompt.parent and same_code(source, prompt.parent.source):
            return Reply(text=_ended(_same_words(before)), usage=Usage())
        made = twin(source, session) if strategy is not None and prompt.parent else None
        # A kernel that a person rejected may come again, and take its place then.
        if made is not None and made.approved:
            return Reply(text=_ended(f"r{made.number} is that kernel already"), usage=Usage())
        rationale = strategy.statement if strategy and strategy.parents else written.rationale
        lines = [" ".join(filter(None, [rationale, kept, answer])), _prediction(strategy)]
        return Reply(text="\n\n".join([*lines, f"```python\n{source}```", ""]), usage=Usage())

    def _crossed(self, prompt: Prompt, session: Session) -> str:
        writer = self._writer(session.facts, session.problem.library)

        @cache
        def code(steps: tuple[str, ...]) -> str:
            return writer.write(session.problem, session.facts, steps).source

        return crossed(prompt, session, self._menu_of(session), self.name, code)

    def _new_steps(self, strategy: Strategy, before: tuple[str, ...], session: Session) -> tuple[str, ...]:
        """Steps that a strategy adds: its own, or those missing of what it combines, in the menu's order."""
        if not strategy.parents:
            return (strategy.name,)
        missing = [name for name in steps_of(strategy, session) if name not in before]
        order = [item.name for item in self._menu_of(session)]
        return tuple(sorted(missing, key=lambda name: order.index(name) if name in order else len(order)))

    def _menu_of(self, session: Session) -> tuple[Strategy, ...]:
        return self.menu(session.facts, session.problem.library)

    def _writer(self, facts: ProblemFacts, library: Library) -> Writer:
        writer = next((item for item in self._writers if item.accepts(facts, library)), None)
        if writer is None:
            raise Declined("the offline author has no kernels for this kind of problem")
        return writer


def _as_asked(source: str, prompt: Prompt, session: Session, writer: Writer) -> tuple[str, str]:
    """Return the source with the settings that a person asks for today, and the answer to these words."""
    if not prompt.steering:
        return source, ""
    names = _names_of(writer, session)
    element_bytes = _element_bytes(session.facts)
    result = followed(source, settings_in(prompt.steering, names), element_bytes)
    return result.source, sentence(prompt.steering, result, _named(prompt), names)


def _as_before(source: str, prompt: Prompt, session: Session, writer: Writer) -> str:
    """Return the source with the settings that a person asked for in the rounds up to the parent."""
    before = words_before(prompt.parent, session)
    names = _names_of(writer, session) if before else []
    for words in before:
        source = followed(source, settings_in(words, names), _element_bytes(session.facts)).source
    return source


def _names_of(writer: Writer, session: Session) -> list[str]:
    return [strategy.name for strategy in writer.menu(session.facts, session.problem.library)]


def _named(prompt: Prompt) -> str:
    """Name of the request's strategy if the person's words hold it."""
    name = prompt.strategy.name if prompt.strategy else ""
    return name if name and name.replace("-", " ") in prompt.steering.lower().replace("-", " ") else ""


def _element_bytes(facts: ProblemFacts) -> int:
    """Bytes of the widest dtype among inputs and parameters."""
    given = (*facts.full.graph.inputs, *facts.full.graph.parameters)
    return max((DTYPE_BYTES[value.spec.dtype] for value in given), default=4)


def _ended(reason: str) -> str:
    return f"Strategy: cannot apply — because {reason}.\n"


def _same_words(applied: tuple[str, ...]) -> str:
    steps = f"; {', '.join(applied)} applied already" if applied else ""
    return f"the templates write the same code with and without it{steps}"


def _prediction(strategy: Strategy | None) -> str:
    """Predict the strategy's effects; without a GPU an estimate stands for the time."""
    effects = strategy.effects if strategy else ()
    if not effects:
        return "Predicted effect: none; this is the kernel that later ones are compared with."
    moves = [f"{item.counter} {item.direction.value}" for item in effects]
    return f"Predicted effect: {', '.join(moves)}."
