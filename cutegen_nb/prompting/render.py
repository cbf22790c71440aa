"""Session, strategy and evidence → the prompt of a request.

What a model is told keeps one order: contract, reference, workload, device, work and roof, the parent
and its numbers, what was tried, the person's words, the one strategy of the round.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Prompt, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Bound, Strategy
from cutegen_nb.prompting.facts import device_text, work_text, workload_text
from cutegen_nb.prompting.feedback import evaluation_text, tried_text
from cutegen_nb.prompting.library import PromptLibrary


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """What every prompt of a round rests on."""

    library: PromptLibrary
    """Templates."""
    session: Session
    """Problem, device, and the rounds so far."""
    floor_ms: float
    """Least time of the full size, from the roofline."""
    bound: Bound
    """What sets that floor."""
    diagnosis: tuple[str, ...] = ()
    """What limits the parent and why, in lines; empty before there is one."""


def prompt_digest(system: str, user: str) -> str:
    """SHA-256 of both parts, hexadecimal."""
    return hashlib.sha256(f"{system}\0{user}".encode(errors="surrogatepass")).hexdigest()


def make_prompt(
    *, system: str, user: str, purpose: str, strategy: Strategy | None = None, parent: Candidate | None = None
) -> Prompt:
    """A prompt with its digest."""
    return Prompt(
        system=system,
        user=user,
        digest=prompt_digest(system, user),
        purpose=purpose,
        strategy=strategy,
        parent=parent,
    )


def first_prompt(background: Background, steering: str) -> Prompt:
    """Ask for a first kernel that passes; later rounds make it fast."""
    user = background.library.render(
        "generate", **_problem(background), tried=tried_text(background.session), steering=steering
    )
    return make_prompt(system=_contract(background), user=user, purpose="generate")


def optimise_prompt(background: Background, parent: Round, strategy: Strategy, steering: str) -> Prompt:
    """Ask for one strategy on the parent, which has a candidate and an evaluation."""
    candidate, evaluation = parent.candidate, parent.evaluation
    assert candidate is not None
    assert evaluation is not None
    user = background.library.render(
        "optimise",
        **_problem(background),
        revision=f"r{parent.number}",
        parent=candidate.source,
        evaluation=evaluation_text(evaluation, candidate),
        diagnosis="\n".join(background.diagnosis),
        tried=tried_text(background.session),
        steering=steering,
        strategy=strategy,
    )
    return make_prompt(
        system=_contract(background), user=user, purpose="optimise", strategy=strategy, parent=candidate
    )


def diagnose_prompt(
    background: Background,
    failed: Candidate,
    evaluation: Evaluation,
    *,
    strategy: Strategy | None,
    steering: str,
) -> Prompt:
    """Ask what is wrong with a failed candidate, in words."""
    user = background.library.render(
        "diagnose",
        **_problem(background),
        failed=failed.source,
        evaluation=evaluation_text(evaluation, failed),
        steering=steering,
    )
    return make_prompt(
        system=_contract(background), user=user, purpose="diagnose", strategy=strategy, parent=failed
    )


def repair_prompt(
    background: Background,
    failed: Candidate,
    evaluation: Evaluation,
    *,
    strategy: Strategy | None,
    diagnosis: str,
) -> Prompt:
    """Ask for the cure that a diagnosis names."""
    user = background.library.render(
        "repair",
        **_problem(background),
        failed=failed.source,
        evaluation=evaluation_text(evaluation, failed),
        diagnosis=diagnosis.encode(errors="replace").decode() or "(none was given)",
        strategy=strategy,
    )
    return make_prompt(
        system=_contract(background), user=user, purpose="repair", strategy=strategy, parent=failed
    )


def retry_prompt(background: Background, prompt: Prompt, reason: str) -> Prompt:
    """The same request again, with why the last answer could not be used."""
    return make_prompt(
        system=prompt.system,
        user=background.library.render("retry", request=prompt.user.rstrip(), reason=reason),
        purpose="reply",
        strategy=prompt.strategy,
        parent=prompt.parent,
    )


def edited_prompt(prompt: Prompt, text: str) -> Prompt:
    """The same request in a person's words."""
    return make_prompt(
        system=prompt.system,
        user=text,
        purpose=prompt.purpose,
        strategy=prompt.strategy,
        parent=prompt.parent,
    )


def _contract(background: Background) -> str:
    library = background.library
    return library.render("contract", example=library.text("example_add.py.txt"))


def _problem(background: Background) -> dict[str, str]:
    facts, device = background.session.facts, background.session.device
    return {
        "reference": background.session.problem.source,
        "workload": workload_text(facts, device),
        "device": device_text(device),
        "work": work_text(facts, floor_ms=background.floor_ms, bound=background.bound),
    }
