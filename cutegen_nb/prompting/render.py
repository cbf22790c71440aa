"""Session, strategy and evidence → the prompt of a request.

What a model is told keeps one order: contract, reference, workload, device, work and roof, what the class of
work asks for, the parent and its numbers, what was tried, the person's words, chapters of the guide, the one
strategy of the round. Counters and their diagnosis enter with the stage that asks for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.ports import Guide
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.session import Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Bound, Strategy
from cutegen_nb.prompting.facts import device_text, work_text, workload_text
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.prompting.library import PromptLibrary
from cutegen_nb.prompting.memory import tried_text
from cutegen_nb.prompting.parse import split_thoughts

_TEMPLATES = {Stage.STRUCTURE: "optimise", Stage.PROFILE: "profile", Stage.TUNE: "tune"}
"""The request of each stage that works on a parent."""
_FAULTS = {
    "compile": {Verdict.SCREENED_OUT, Verdict.COMPILE_FAILED},
    "run_time": {Verdict.CRASHED, Verdict.EXITED, Verdict.TIMED_OUT, Verdict.OUT_OF_MEMORY},
    "wrong_values": {Verdict.WRONG_VALUES, Verdict.NONDETERMINISTIC},
    "finding": {
        Verdict.OUT_OF_BOUNDS,
        Verdict.MISALIGNED,
        Verdict.UNINITIALISED_READ,
        Verdict.RACE,
        Verdict.DEADLOCK,
        Verdict.ASYNC_HAZARD,
    },
    "contract": {Verdict.WRONG_SHAPE, Verdict.WRONG_DTYPE, Verdict.INPUT_MODIFIED, Verdict.CHEATED},
}
"""Which template says how such a failure is found."""
_FIRST_KERNEL = "launch a grid, guard the tail of the last CTA, compile once with dynamic shapes"
"""What a first kernel asks of the guide, beside the class of work."""
_DIAGNOSIS_CHARACTERS = 6000
"""Ten sentences were asked for; a model that repeats itself gives hundreds of thousands of characters."""


def no_guide(source: str, strategy: str, error: str) -> str:  # noqa: ARG001 - the port's
    """A guide with no chapter."""
    return ""


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
    """What limits the parent and why, in lines; shown from PROFILE on."""
    resources: tuple[str, ...] = ()
    """Registers, spills and occupancy of the parent, in lines; shown from PROFILE on."""
    scores: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """What came of the claims of each round, in lines, by its number."""
    guide: Guide = no_guide
    """Chapters of the CuTe DSL guide for a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """The revision a round starts from."""

    revision: str
    """``r3``."""
    candidate: Candidate
    """Its source."""
    evaluation: Evaluation
    """What was found of it, with the counters that are known."""


def prompt_digest(system: str, user: str) -> str:
    """SHA-256 of both parts, hexadecimal."""
    return hashlib.sha256(f"{system}\0{user}".encode(errors="surrogatepass")).hexdigest()


def first_prompt(background: Background, steering: str) -> Prompt:
    """Ask for a first kernel that passes; later rounds make it fast."""
    wanted = _wanted(background, _FIRST_KERNEL)
    user = background.library.render(
        "generate",
        **_problem(background),
        **_history(background, steering, "", wanted),
        advice=_class_advice(background),
    )
    return _prompt(background, user, purpose="generate", stage=Stage.CORRECT)


def optimise_prompt(  # noqa: PLR0913 - what a round is, each named at its two calls
    background: Background,
    given: Given,
    strategy: Strategy,
    steering: str,
    *,
    stage: Stage = Stage.STRUCTURE,
    because: str = "",
) -> Prompt:
    """Ask for one strategy on the parent, in the words of `stage`; `because` says what brought it there."""
    wanted = _wanted(background, f"{strategy.name}: {strategy.statement}")
    user = background.library.render(
        _TEMPLATES[stage],
        **_problem(background),
        **_history(background, steering, given.candidate.source, wanted),
        advice=_class_advice(background),
        revision=given.revision,
        parent=given.candidate.source,
        evaluation=evaluation_text(given.evaluation, given.candidate, stage),
        diagnosis="\n".join(background.diagnosis),
        resources="\n".join(f"- {line}" for line in background.resources),
        because=because,
        strategy=strategy,
    )
    return _prompt(
        background, user, purpose="optimise", strategy=strategy, parent=given.candidate, stage=stage
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
    found = evaluation_text(evaluation, failed)
    user = background.library.render(
        "diagnose",
        **_problem(background),
        failed=failed.source,
        evaluation=found,
        advice=_advice(background, f"faults/{fault_of(evaluation)}"),
        guide=background.guide(failed.source, "", found),
        steering=steering,
    )
    return _prompt(background, user, purpose="diagnose", strategy=strategy, parent=failed)


def repair_prompt(  # noqa: PLR0913 - what a repair is told, each named at its two calls
    background: Background,
    failed: Candidate,
    evaluation: Evaluation,
    *,
    strategy: Strategy | None,
    diagnosis: str,
    flagged: Sequence[str] = (),
) -> Prompt:
    """Ask for the cure that a diagnosis names; `flagged` is what earlier repairs gave up."""
    found = evaluation_text(evaluation, failed)
    user = background.library.render(
        "repair",
        **_problem(background),
        failed=failed.source,
        evaluation=found,
        diagnosis=_diagnosis(diagnosis),
        flagged=tuple(flagged),
        guide=background.guide(failed.source, "", found),
        strategy=strategy,
    )
    return _prompt(background, user, purpose="repair", strategy=strategy, parent=failed)


def retry_prompt(background: Background, prompt: Prompt, reason: str) -> Prompt:
    """The same request again, with why the last answer could not be used."""
    user = background.library.render("retry", request=prompt.user.rstrip(), reason=reason)
    return _as(prompt, user, purpose="reply")


def edited_prompt(prompt: Prompt, text: str) -> Prompt:
    """The same request in a person's words."""
    return _as(prompt, text, purpose=prompt.purpose)


def _diagnosis(reply: str) -> str:
    """What a diagnosis says, without what its author thought before, cut where it does not end."""
    text = split_thoughts(reply.encode(errors="replace").decode())[1].strip()
    if len(text) > _DIAGNOSIS_CHARACTERS:
        return f"{text[:_DIAGNOSIS_CHARACTERS]}\n(cut here: it had {len(text):,} characters)"
    return text or "(none was given)"


def fault_of(evaluation: Evaluation) -> str:
    """The kind of failure, as ``faults/`` names its templates; ``run_time`` for one without a verdict."""
    if not isinstance(evaluation.outcome, Judged):
        return "run_time"
    verdict = evaluation.outcome.verdict
    return next((name for name, verdicts in _FAULTS.items() if verdict in verdicts), "run_time")


def class_template(workload_class: WorkloadClass) -> str:
    """The template on what a class of work asks for."""
    name = workload_class.value.replace("element-wise", "elementwise").replace(" ", "_")
    return f"classes/{name}"


def _prompt(  # noqa: PLR0913 - what a prompt is
    background: Background,
    user: str,
    *,
    purpose: str,
    strategy: Strategy | None = None,
    parent: Candidate | None = None,
    stage: Stage | None = None,
) -> Prompt:
    library = background.library
    system = library.render("contract", example=library.text("example_add.py.txt"))
    return Prompt(
        system=system,
        user=user,
        digest=prompt_digest(system, user),
        purpose=purpose,
        strategy=strategy,
        parent=parent,
        stage=stage,
        templates=library.own_digest,
    )


def _as(prompt: Prompt, user: str, *, purpose: str) -> Prompt:
    """`prompt` with another request."""
    return Prompt(
        system=prompt.system,
        user=user,
        digest=prompt_digest(prompt.system, user),
        purpose=purpose,
        strategy=prompt.strategy,
        parent=prompt.parent,
        stage=prompt.stage,
        templates=prompt.templates,
    )


def _class_advice(background: Background) -> str:
    """What the class asks for; of a fused graph also what its dominant part does."""
    facts = background.session.facts
    texts = [_advice(background, class_template(kind)) for kind in (facts.workload_class, *facts.parts[:1])]
    return "\n".join(texts)


def _advice(background: Background, template: str) -> str:
    facts, device = background.session.facts, background.session.device
    return background.library.render(template, dtype=facts.dtype, architecture=device.architecture)


def _wanted(background: Background, asked: str) -> str:
    """What the guide is searched for: the class of work, tensors that are no numbers, and what is `asked`."""
    facts = background.session.facts
    masks = "mask bool tensor " if any(item.spec.dtype == "bool" for item in facts.full.graph.inputs) else ""
    kinds = " ".join(kind.value for kind in (facts.workload_class, *facts.parts[:1]))
    return f"{kinds}: {masks}{asked}"


def _history(background: Background, steering: str, source: str, wanted: str) -> dict[str, str]:
    """What was tried, what a person asks for, and the guide's chapters for what is `wanted` of `source`."""
    return {
        "tried": tried_text(background.session, background.scores),
        "steering": steering,
        "guide": background.guide(source, wanted, ""),
    }


def _problem(background: Background) -> dict[str, str]:
    facts, device = background.session.facts, background.session.device
    return {
        "reference": background.session.problem.source,
        "workload": workload_text(facts, device),
        "device": device_text(device),
        "work": work_text(facts, floor_ms=background.floor_ms, bound=background.bound),
    }
