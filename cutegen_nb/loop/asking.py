"""What an author is asked in a round: step, evidence and templates → a prompt. No other effect.

`cutegen-nb prompt` prints what these give, so that what is shown is what would be sent.
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.analysis.diagnose import diagnose
from cutegen_nb.analysis.prediction import round_scores
from cutegen_nb.analysis.roofline import place
from cutegen_nb.analysis.static_text import static_facts_text
from cutegen_nb.core.ports import Guide
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.loop.lineage import parent_evaluation
from cutegen_nb.loop.stages import Step
from cutegen_nb.prompting.library import PromptLibrary
from cutegen_nb.prompting.render import Background, Given, first_prompt, optimise_prompt

WITH_COUNTERS = (Stage.PROFILE, Stage.TUNE)
"""Stages whose prompts tell counters, resources and the diagnosis."""
_SCORED = 12
"""Newest rounds whose claims are scored for a prompt; the memory summarises what is older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Where the words of a prompt come from."""

    library: PromptLibrary
    """Templates."""
    guide: Guide
    """Chapters of the CuTe DSL guide."""


def background_of(session: Session, words: Words, step: Step | None = None) -> Background:
    """What every prompt of a round rests on; diagnosis and resources where the step's stage tells them."""
    evaluation = None
    if step is not None and step.parent is not None and step.stage in WITH_COUNTERS:
        evaluation = parent_evaluation(session, step.parent)
    roof = place(session.facts, session.device)
    return Background(
        library=words.library,
        session=session,
        floor_ms=roof.floor_ms,
        bound=roof.bound,
        diagnosis=diagnose(session.facts, evaluation, session.device).text() if evaluation else (),
        resources=static_facts_text(evaluation.profile) if evaluation and evaluation.profile else (),
        scores={item.number: round_scores(session, item) for item in session.rounds[-_SCORED:]},
        guide=words.guide,
    )


def prompt_of_step(session: Session, words: Words, step: Step, steering: str) -> Prompt:
    """The request of the next round."""
    background = background_of(session, words, step)
    if step.parent is None or step.strategy is None:
        return first_prompt(background, steering)
    candidate, evaluation = step.parent.candidate, parent_evaluation(session, step.parent)
    assert candidate is not None
    assert evaluation is not None
    given = Given(revision=f"r{step.parent.number}", candidate=candidate, evaluation=evaluation)
    return optimise_prompt(background, given, step.strategy, steering, stage=step.stage, because=step.because)
