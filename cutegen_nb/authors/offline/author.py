"""The author that needs no network: it plans kernels from the graph and writes them from templates."""

from __future__ import annotations

from cutegen_nb.authors.offline.fused_loops import FusedLoopsWriter
from cutegen_nb.authors.offline.matmul import MatmulWriter
from cutegen_nb.authors.offline.writers import Writer
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy

WRITERS: tuple[Writer, ...] = (MatmulWriter(), FusedLoopsWriter())
"""Asked in this order; the last one takes whatever is left."""


class OfflineAuthor:
    """Port Author over hand-written templates."""

    name = "offline"

    def __init__(self, writers: tuple[Writer, ...] = WRITERS) -> None:
        self._writers = writers

    def menu(self, facts: ProblemFacts) -> tuple[Strategy, ...]:
        """Strategies for this problem, in order. Raises Declined with one sentence."""
        return self._writer(facts).menu(facts)

    async def write(self, prompt: Prompt, session: Session, progress: Progress) -> Reply:
        """Write the parent's kernel with one more strategy. Raises Declined."""
        if prompt.purpose not in ("generate", "optimise"):
            raise Declined("the offline author cannot repair a kernel: it would write the same file again")
        if prompt.parent is not None and prompt.parent.author != self.name:
            raise Declined(
                f"the offline author goes on from kernels of its own only; this is by {prompt.parent.author}"
            )
        progress("writing the kernel from templates")
        applied = lineage(prompt.parent, session)
        if prompt.strategy is not None:
            applied = (*applied, prompt.strategy.name)
        written = self._writer(session.facts).write(session.problem, session.facts, applied)
        lines = [written.rationale, _prediction(prompt.strategy), f"```python\n{written.source}```", ""]
        return Reply(text="\n\n".join(lines), usage=Usage())

    def _writer(self, facts: ProblemFacts) -> Writer:
        writer = next((item for item in self._writers if item.accepts(facts)), None)
        if writer is None:
            raise Declined("the offline author has no kernels for this kind of problem")
        return writer


def lineage(parent: Candidate | None, session: Session) -> tuple[str, ...]:
    """Names of the strategies carried out from the first candidate to `parent`, oldest first."""
    known = {
        attempt.candidate.digest: attempt.candidate
        for item in session.rounds
        for attempt in item.attempts
        if attempt.candidate is not None
    }
    names: list[str] = []
    seen: set[str] = set()
    while parent is not None and parent.digest not in seen:
        seen.add(parent.digest)
        if parent.strategy is not None:
            names.append(parent.strategy.name)
        parent = next((known[digest] for digest in parent.parents if digest in known), None)
    return tuple(reversed(names))


def _prediction(strategy: Strategy | None) -> str:
    if strategy is None or not strategy.effects:
        return "Predicted effect: none; this is the kernel that later ones are compared with."
    moves = ", ".join(f"{effect.counter} {effect.direction.value}" for effect in strategy.effects)
    return f"Predicted effect: {moves}."
