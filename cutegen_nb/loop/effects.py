"""Side effects of a round."""

from __future__ import annotations

from dataclasses import dataclass, field

from cutegen_nb.analysis.estimate.targets import EstimateTarget
from cutegen_nb.core.ports import Approver, Author, Clock, Evaluator, Guide, Progress
from cutegen_nb.core.search.knowledge import Learn, Recall, learn_nothing, no_knowledge
from cutegen_nb.loop.asking import PromptSources
from cutegen_nb.prompting.context import no_guide
from cutegen_nb.prompting.library import PromptLibrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Side effects of a round, chosen in ``wiring.py``."""

    author: Author
    """Writer of candidates."""
    evaluator: Evaluator
    """Compiler, runner and judge of candidates."""
    approver: Approver
    """Decider at the gates."""
    clock: Clock
    """Source of time."""
    library: PromptLibrary
    """Prompt templates."""
    progress: Progress
    """Callback that receives the current activity."""
    guide: Guide = no_guide
    """CuTe DSL guide: sections for a request."""
    knowledge: Recall = no_knowledge
    """Knowledge base: records of like problems."""
    learn: Learn = learn_nothing
    """Knowledge base: function that keeps the records of a finished round."""
    environment: dict[str, str] = field(default_factory=dict)
    """Package versions, for the record of a new session."""
    server: str = ""
    """Address of the model's server, for the record of a new session; empty without one."""
    target: EstimateTarget | None = None
    """GPU that times are estimated for where none runs the candidates; None for `target_of` the session."""

    @property
    def words(self) -> PromptSources:
        """Sources of the text of a prompt."""
        return PromptSources(
            library=self.library, guide=self.guide, knowledge=self.knowledge, target=self.target
        )
