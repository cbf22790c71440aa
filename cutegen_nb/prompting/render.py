"""Prompt builder: the prompt of a request from session, strategy and evaluation.

The order is that of use: contract, the person's words, the task of the round, what was found about this
kernel (verdict, counts, registers, diagnosis, earlier rounds), its source, the problem and the device, advice
for the workload class, and last the chapters of the guide. Counters by line and their diagnosis enter with
the stage that shows them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.ports import FIRST_KERNEL, GuideRequest
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Prompt
from cutegen_nb.core.session import PromptPart
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy, StrategySource
from cutegen_nb.prompting.context import ParentRevision, PromptContext
from cutegen_nb.prompting.facts import device_text, library_parts, work_text, workload_text
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.prompting.guide import FIRST_ASKED
from cutegen_nb.prompting.memory import tried_text
from cutegen_nb.prompting.reply_faults import split_thoughts

_TEMPLATES = {Stage.STRUCTURE: "optimise", Stage.PROFILE: "profile", Stage.TUNE: "tune"}
"""Template of each stage that works on a parent."""
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
    "own_work": {Verdict.NOT_OWN_WORK},
    "contract": {Verdict.WRONG_SHAPE, Verdict.WRONG_DTYPE, Verdict.INPUT_MODIFIED, Verdict.CHEATED},
}
"""Verdicts of each template in ``faults/``, which says how to find such a fault."""
_DIAGNOSIS_CHARACTERS = 6000
"""Characters kept of a diagnosis. Ten sentences are asked for; a model that repeats itself sends hundreds of
thousands of characters."""
_ANSWER_CHARACTERS = 6000
"""Characters quoted of an unusable answer, enough for a rationale and the beginning and end of its code."""


def prompt_digest(system: str, user: str) -> str:
    """SHA-256 of system and user message, hexadecimal."""
    return hashlib.sha256(f"{system}\0{user}".encode(errors="surrogatepass")).hexdigest()


def first_prompt(background: PromptContext) -> Prompt:
    """Ask for a first kernel that passes; later rounds optimise it."""
    names = _classes(background)
    user = background.library.render(
        "generate",
        **problem_values(background),
        **_history(background, "", f"{FIRST_ASKED}: {', '.join(names)}.", FIRST_KERNEL),
        advice=class_advice(background),
    )
    return contract_prompt(background, user, purpose="generate", stage=Stage.CORRECT)


def optimise_prompt(  # noqa: PLR0913 - what a round is told, each named at its only call
    background: PromptContext,
    given: ParentRevision,
    strategy: Strategy,
    *,
    stage: Stage = Stage.STRUCTURE,
    because: str = "",
    in_slot: bool = False,
) -> Prompt:
    """Ask for one strategy on the parent, with the template of `stage`; `because` says why it began.

    In a slot of a population no other strategy follows one that the author ends.
    """
    asked = f"{strategy.name}: {strategy.statement}"
    # Without counters by line the figures are those of the stage before.
    detail = stage if background.session.plan.shows_counters(stage) else Stage.STRUCTURE
    user = background.library.render(
        _TEMPLATES[stage],
        **problem_values(background),
        **_history(background, given.candidate.source, f"{asked} {background.steering}", strategy.name),
        advice=class_advice(background),
        revision=given.revision,
        parent=given.candidate.source,
        evaluation=evaluation_text(given.evaluation, given.candidate, detail),
        diagnosis="\n".join(background.diagnosis),
        resources="\n".join(f"- {line}" for line in background.resources),
        because=because,
        strategy=strategy,
        in_slot=in_slot,
        strategy_decides=strategy.source != StrategySource.LIBRARY,
    )
    return contract_prompt(
        background, user, purpose="optimise", strategy=strategy, parent=given.candidate, stage=stage
    )


def diagnose_prompt(
    background: PromptContext,
    failed: Candidate,
    evaluation: Evaluation,
    *,
    strategy: Strategy | None,
) -> Prompt:
    """Ask for the fault of a failed candidate, in words."""
    found = evaluation_text(evaluation, failed)
    user = background.library.render(
        "diagnose",
        **problem_values(background),
        failed=failed.source,
        evaluation=found,
        advice=_advice(background, f"faults/{fault_of(evaluation)}"),
        guide=_cure(background, failed, found),
        steering=background.steering,
    )
    return contract_prompt(background, user, purpose="diagnose", strategy=strategy, parent=failed)


def repair_prompt(  # noqa: PLR0913 - what a repair is told, each named at its two calls
    background: PromptContext,
    failed: Candidate,
    evaluation: Evaluation,
    *,
    strategy: Strategy | None,
    diagnosis: str,
    flagged: Sequence[str] = (),
) -> Prompt:
    """Ask for the repair that a diagnosis suggests; `flagged` lists simplifications of earlier repairs."""
    found = evaluation_text(evaluation, failed)
    user = background.library.render(
        "repair",
        **problem_values(background),
        failed=failed.source,
        evaluation=found,
        diagnosis=_diagnosis(diagnosis),
        flagged=tuple(flagged),
        guide=_cure(background, failed, found),
        steering=background.steering,
        strategy=strategy,
    )
    return contract_prompt(background, user, purpose="repair", strategy=strategy, parent=failed)


def retry_prompt(background: PromptContext, prompt: Prompt, reason: str, answer: str) -> Prompt:
    """Repeat a request, with the unusable answer and the reason; a long answer is quoted at both ends."""
    if len(answer) > _ANSWER_CHARACTERS:
        half = _ANSWER_CHARACTERS // 2
        left_out = len(answer) - 2 * half
        answer = f"{answer[:half]}\n[… {left_out:,} characters left out …]\n{answer[-half:]}"
    answer = answer.encode(errors="replace").decode()
    user = background.library.render(
        "retry", request=prompt.user.rstrip(), reason=reason, answer=answer.strip()
    )
    return _as(prompt, user, purpose="reply")


def edited_prompt(prompt: Prompt, text: str) -> Prompt:
    """Replace a request by a person's text."""
    return _as(prompt, text, purpose=prompt.purpose)


def _diagnosis(reply: str) -> str:
    """Text of a diagnosis, without reasoning and cut to `_DIAGNOSIS_CHARACTERS`; may be empty."""
    text = split_thoughts(reply.encode(errors="replace").decode())[1].strip()
    if len(text) > _DIAGNOSIS_CHARACTERS:
        return f"{text[:_DIAGNOSIS_CHARACTERS]}\n(cut here: it had {len(text):,} characters)"
    return text


def fault_of(evaluation: Evaluation) -> str:
    """Name of the failure's template in ``faults/``. A failure without a verdict takes ``run_time``."""
    if not isinstance(evaluation.outcome, Judged):
        return "run_time"
    verdict = evaluation.outcome.verdict
    return next((name for name, verdicts in _FAULTS.items() if verdict in verdicts), "run_time")


def class_template(workload_class: WorkloadClass) -> str:
    """Name of the template with advice for a workload class."""
    name = workload_class.value.replace("element-wise", "elementwise").replace(" ", "_")
    return f"classes/{name}"


def contract_prompt(  # noqa: PLR0913 - what a prompt is
    background: PromptContext,
    user: str,
    *,
    purpose: str,
    strategy: Strategy | None = None,
    parent: Candidate | None = None,
    stage: Stage | None = None,
    crossed: tuple[str, ...] = (),
    is_code: bool = True,
) -> Prompt:
    """Build a prompt of a rendered user message and the contract for code, or a short one for words."""
    library = background.library
    policy = library_parts(background.session.problem.library)
    if is_code:
        system = library.render("contract", example=library.text("example_add.py.txt"), library=policy)
    else:
        system = library.render("words", library=policy)
    return Prompt(
        system=system,
        user=user,
        digest=prompt_digest(system, user),
        purpose=purpose,
        strategy=strategy,
        parent=parent,
        stage=stage,
        templates=library.own_digest,
        steering=background.steering,
        crossed=crossed,
    )


def _as(prompt: Prompt, user: str, *, purpose: str) -> Prompt:
    """Copy of `prompt` with another user message."""
    return Prompt(
        system=prompt.system,
        user=user,
        digest=prompt_digest(prompt.system, user),
        purpose=purpose,
        strategy=prompt.strategy,
        parent=prompt.parent,
        stage=prompt.stage,
        templates=prompt.templates,
        steering=prompt.steering,
        crossed=prompt.crossed,
    )


def class_advice(background: PromptContext) -> str:
    """Advice for the workload class; for a fused graph also for its dominant part."""
    facts = background.session.facts
    texts = [_advice(background, class_template(kind)) for kind in (facts.workload_class, *facts.parts[:1])]
    return "\n".join(texts)


def _stated(background: PromptContext) -> Device:
    """Device whose figures the request states."""
    return background.device or background.session.device


def _classes(background: PromptContext) -> tuple[str, ...]:
    """Workload class of the problem and of its dominant part."""
    facts = background.session.facts
    return tuple(kind.value for kind in (facts.workload_class, *facts.parts[:1]))


def _dtypes(background: PromptContext) -> tuple[str, ...]:
    return tuple(sorted({item.spec.dtype for item in background.session.facts.full.graph.inputs}))


def _advice(background: PromptContext, template: str) -> str:
    session = background.session
    return background.library.render(
        template,
        dtype=session.facts.dtype,
        architecture=session.device.architecture,
        library=library_parts(session.problem.library),
        sms=_stated(background).sm_count,
        extents=background.extents,
        held=_held(background.extents.get("columns", 0)),
    )


def _held(columns: int) -> str:
    """Say how many values of a row a thread holds: of a warp for short rows, else of a CTA that fits them.

    A thread holds about 32 values without spilling, so a warp has room for 1,024 and a CTA for 32,768.
    """
    if not columns:
        return (
            "a row of up to 1,024 elements fits the lanes of a warp, one of up to 32,768 the threads of a CTA"
        )
    widths = ((1024, 32), (8192, 256), (16384, 512))
    threads = next((width for most, width in widths if columns <= most), 1024)
    each = -(-columns // threads)
    elements = f"{columns:,} element{'s' if columns != 1 else ''}"
    holder = "with a warp a row" if threads == 32 else f"with {threads} threads a row"  # noqa: PLR2004 - a warp
    return f"{elements}, {each} value{'s' if each != 1 else ''} a thread {holder}"


def _cure(background: PromptContext, failed: Candidate, found: str) -> str:
    """Sections of the guide for the failure `found` of a candidate, none of another class or dtype."""
    request = GuideRequest(
        source=failed.source,
        error=found,
        classes=_classes(background),
        dtypes=_dtypes(background),
        architecture=background.session.device.architecture,
    )
    return background.guide(request)


def guide_sections(background: PromptContext, source: str, asked: str, wanted: str = "") -> str:
    """Sections of the guide, and the worked example of `wanted`, for the request `asked` about `source`."""
    request = GuideRequest(
        source=source,
        strategy=asked,
        wanted=wanted,
        classes=_classes(background),
        dtypes=_dtypes(background),
        architecture=background.session.device.architecture,
    )
    return background.guide(request)


def knowledge_text(background: PromptContext) -> str:
    """Format the lines on like problems as a list; empty without any."""
    return "".join(f"- {line}\n" for line in background.knowledge)


def history_text(background: PromptContext) -> str:
    """Format the earlier rounds; empty where the session's plan leaves them out."""
    without_history = PromptPart.HISTORY in background.session.plan.without
    return "" if without_history else tried_text(background.session, background.scores)


def _history(background: PromptContext, source: str, asked: str, wanted: str) -> dict[str, str]:
    """Values for a template: earlier rounds and sessions, the person's request, sections of the guide."""
    return {
        "knowledge": knowledge_text(background),
        "tried": history_text(background),
        "steering": background.steering,
        "guide": guide_sections(background, source, asked, wanted),
    }


def problem_values(background: PromptContext) -> dict[str, str]:
    """Values for a template: the reference, its tensors, the device, and what is known of the work."""
    facts, device = background.session.facts, background.session.device
    estimated_for = None if device.kind is DeviceKind.GPU else _stated(background)
    return {
        "reference": background.session.problem.source,
        "workload": workload_text(facts, device),
        "device": device_text(device, background.ceilings, estimated_for),
        "work": work_text(facts, background.floors),
    }
