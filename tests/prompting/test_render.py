"""Golden renderings: run with CUTEGEN_UPDATE_GOLDEN=1 to write them again, then read the diff."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Action, Attempt, Comparison, Decision, Prompt, Relation, Round
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Bound
from cutegen_nb.evaluator.worker.isolated_call import Given
from cutegen_nb.prompting.library import PromptLibrary, fenced, shipped_library
from cutegen_nb.prompting.render import (
    PromptContext,
    class_template,
    diagnose_prompt,
    edited_prompt,
    fault_of,
    first_prompt,
    optimise_prompt,
    prompt_digest,
    repair_prompt,
    retry_prompt,
)
from cutegen_nb.testing import examples

GOLDEN = Path(__file__).parent / "golden"


def session(*rounds: Round) -> Session:
    return Session(
        name="relu",
        problem=examples.relu_problem(),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="scripted",
        budget=Budget(),
        created_at="2026-01-01T00:00:00+00:00",
        rounds=rounds,
    )


def finished(number: int, mark: str, relation: Relation, *decisions: Decision) -> Round:
    candidate = Candidate(source=examples.kernel_source(mark), author="scripted")
    prompt = Prompt(system="", user="", digest="")
    attempt = Attempt(
        purpose="optimise",
        prompt=prompt,
        reply=None,
        candidate=candidate,
        evaluation=examples.passed(1024),
    )
    return Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=examples.strategies()[number - 1] if number else None,
        attempts=(attempt,),
        comparison=Comparison(relation=relation, reason="1,024 sectors."),
        decisions=decisions,
        started_at="2026-01-01T00:00:00+00:00",
        seconds=1.0,
    )


def decided(action: Action, reason: str, by: str = "person:ada") -> Decision:
    return Decision(gate="revision", action=action, by=by, reason=reason)


def background(*rounds: Round) -> PromptContext:
    return PromptContext(
        library=shipped_library(),
        session=session(*rounds),
        floor_ms=0.0054,
        bound=Bound.MEMORY,
        diagnosis=("Bound: memory (simulated counts). Sectors decide.",) if rounds else (),
    )


def given(item: Round) -> Given:
    return Given(revision=f"r{item.number}", candidate=item.candidate, evaluation=item.evaluation)


def prompts() -> dict[str, Prompt]:
    first = finished(0, "first", Relation.FIRST, decided(Action.APPROVE, "", "policy:auto"))
    second = finished(
        1,
        "second",
        Relation.SAME_WORK,
        decided(Action.STEER, "keep the tail\nin one place"),
        decided(Action.REJECT, "unreadable"),
    )
    known = replace(
        background(first, second),
        resources=("`kernel`: 32 registers a thread",),
        scores={1: ("the strategy: `gmem_load_sectors` down: 1,024 → 1,024 (0 %), did not hold",)},
        guide=lambda source, strategy, error: f"## Vectors\n\n{strategy or error[:20]}" if source else "",
    )
    broken = Candidate(source=examples.kernel_source("broken"), author="scripted")
    wrong = examples.failed(Verdict.OUT_OF_BOUNDS, "Wrote 4 bytes past the end of the output.", line=2)
    strategy, unroll = examples.strategies()[0], examples.strategies()[2]
    start = first_prompt(background(), "")
    steering, because = "keep the tail\nin one place", "2 rounds in a row brought no gain"
    return {
        "generate": start,
        "optimise": optimise_prompt(known, given(first), unroll, steering),
        "profile": optimise_prompt(known, given(first), strategy, "", stage=Stage.PROFILE, because=because),
        "tune": optimise_prompt(known, given(first), unroll, "", stage=Stage.TUNE, because=because),
        "diagnose": diagnose_prompt(known, broken, wrong, strategy=strategy, steering=""),
        "repair": repair_prompt(
            known,
            broken,
            wrong,
            strategy=strategy,
            diagnosis="Line 2 forgets the tail.",
            flagged=["The repair no longer uses vector copies."],
        ),
        "retry": retry_prompt(background(), edited_prompt(start, "Write it."), "The answer was empty."),
    }


@pytest.mark.parametrize("name", sorted(prompts()))
def test_a_prompt_reads_as_its_golden_rendering(name):
    held(name, prompts()[name].user)


def test_the_contract_reads_as_its_golden_rendering():
    held("contract", prompts()["generate"].system)


def held(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.md"
    if os.environ.get("CUTEGEN_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_every_prompt_carries_the_contract_and_a_digest_of_both_parts():
    for prompt in prompts().values():
        assert "class ModelNew(torch.nn.Module)" in prompt.system
        assert "# The reply" in prompt.system
        assert prompt.digest == prompt_digest(prompt.system, prompt.user)
        assert prompt.templates == ""


def test_what_the_model_is_told_keeps_its_order():
    text = prompts()["profile"].user
    order = [
        "# The reference",
        "# The workload",
        "# The device",
        "# What is known",
        "# The kernel to start from (r0)",
        "# What was found",
        "# What the compiler made",
        "# What limits it",
        "# What was tried",
        "# From the CuTe DSL guide",
        "# This round: one change",
    ]
    places = [text.index(heading) for heading in order]
    assert places == sorted(places)
    assert "> the person rejected it: unreadable" in text


def test_counters_by_launch_and_the_diagnosis_enter_with_the_stage_that_asks_for_them():
    found = prompts()
    for name in ("profile", "tune"):
        assert "kernel `kernel`, grid (16, 1, 1)" in found[name].user
        assert "# What limits it" in found[name].user
    assert "kernel `kernel`, grid" not in found["optimise"].user
    assert "# What limits it" not in found["optimise"].user
    assert "1,024 global 32-byte sectors" in found["optimise"].user


@pytest.mark.parametrize("workload_class", list(WorkloadClass))
def test_every_class_of_work_has_words_of_its_own(workload_class):
    facts = replace(examples.relu_facts(), workload_class=workload_class)
    known = replace(background(), session=replace(session(), facts=facts))
    assert shipped_library().has(class_template(workload_class))
    advice = first_prompt(known, "").user.split("# What such work asks for\n\n")[1]
    assert 400 < len(advice.split("# This round")[0]) < 3000


def test_a_diagnosis_is_told_without_its_thoughts_and_cut_where_it_does_not_end():
    broken = Candidate(source=examples.kernel_source("broken"), author="scripted")
    wrong = examples.failed(Verdict.RACE, "Two threads write one address.", line=2)

    def told(words: str) -> str:
        return repair_prompt(background(), broken, wrong, strategy=None, diagnosis=words).user

    assert "> The barrier is missing." in told("<think>hm</think>The barrier is missing.")
    assert "hm" not in told("<think>hm</think>The barrier is missing.").split("# The diagnosis")[1][:80]
    long = told("The tail. " * 40_000)
    assert len(long) < 12_000
    assert "> (cut here: it had 399,999 characters)" in long
    assert "> (none was given)" in told("<think>only this")


def test_a_fused_graph_is_told_what_its_dominant_part_asks_for_as_well():
    facts = replace(
        examples.relu_facts(),
        workload_class=WorkloadClass.FUSED,
        parts=(WorkloadClass.MATMUL, WorkloadClass.NORM),
    )
    text = first_prompt(replace(background(), session=replace(session(), facts=facts)), "").user
    assert "class: fused (matrix product, norm)" in text
    assert "Draw the graph first" in text
    assert "Reuse in three levels" in text


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.PASSED])
def test_every_verdict_has_a_way_to_be_found(verdict):
    broken = Candidate(source=examples.kernel_source("broken"), author="scripted")
    found = examples.failed(verdict, "It failed.", line=1)
    prompt = diagnose_prompt(background(), broken, found, strategy=None, steering="")
    assert len(prompt.user.split("# How such a failure is found")[1]) > 400
    kinds = {
        Verdict.COMPILE_FAILED: "compile",
        Verdict.TIMED_OUT: "run_time",
        Verdict.WRONG_VALUES: "wrong_values",
        Verdict.RACE: "finding",
        Verdict.WRONG_SHAPE: "contract",
    }
    assert fault_of(found) == kinds.get(verdict, fault_of(found))


def test_a_persons_own_template_stands_for_the_shipped_one_and_its_digest_is_kept(tmp_path):
    (tmp_path / "classes").mkdir()
    (tmp_path / "classes" / "elementwise.md.jinja").write_text("Mind the tail, {{ dtype }}.")
    known = replace(background(), library=PromptLibrary(own=tmp_path))
    prompt = first_prompt(known, "")
    assert "Mind the tail, float32." in prompt.user
    assert "# This round: a first kernel" in prompt.user
    assert prompt.templates == known.library.own_digest != ""
    before = prompt.templates
    (tmp_path / "classes" / "elementwise.md.jinja").write_text("Mind the head.")
    assert PromptLibrary(own=tmp_path).own_digest != before


def test_a_persons_file_that_stands_for_nothing_is_named_with_the_nearest(tmp_path):
    (tmp_path / "optimize.md.jinja").write_text("x")
    with pytest.raises(ConfigurationError, match=r"optimize.md.jinja.*did you mean optimise.md.jinja"):
        PromptLibrary(own=tmp_path)
    with pytest.raises(ConfigurationError, match="is no folder"):
        PromptLibrary(own=tmp_path / "nowhere")


def test_a_template_that_names_an_unknown_value_is_an_error_with_its_name(tmp_path):
    (tmp_path / "x.md.jinja").write_text("{{ nothing }}")
    with pytest.raises(ConfigurationError, match=r"x.md.jinja.*nothing"):
        PromptLibrary(tmp_path).render("x")
    with pytest.raises(ConfigurationError, match=r"no prompt template y.md.jinja"):
        PromptLibrary(tmp_path).render("y")


def test_a_template_can_neither_reach_python_nor_change_values(tmp_path):
    (tmp_path / "x.md.jinja").write_text("{{ ''.__class__.__mro__ }}")
    with pytest.raises(ConfigurationError):
        PromptLibrary(tmp_path).render("x")
    (tmp_path / "y.md.jinja").write_text("{{ items.append(1) }}")
    with pytest.raises(ConfigurationError):
        PromptLibrary(tmp_path).render("y", items=[])


def test_a_fence_is_longer_than_any_inside():
    assert fenced("````\nx\n````", "python").startswith("`````python\n")


def test_a_source_with_template_marks_is_not_rendered():
    problem = replace(examples.relu_problem(), source="# {{ 1 + 1 }} {% raw %}\nclass Model: ...\n")
    known = replace(background(), session=replace(session(), problem=problem))
    assert "{{ 1 + 1 }} {% raw %}" in first_prompt(known, "").user
