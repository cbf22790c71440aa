"""Golden renderings: run with CUTEGEN_UPDATE_GOLDEN=1 to write them again, then read the diff."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.round import (
    Action,
    Attempt,
    Comparison,
    Decision,
    Prompt,
    Relation,
    Round,
    Stage,
)
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.strategy import Bound
from cutegen_nb.prompting.library import PromptLibrary, fenced, shipped_library
from cutegen_nb.prompting.render import (
    Background,
    diagnose_prompt,
    edited_prompt,
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


def background(*rounds: Round) -> Background:
    return Background(
        library=shipped_library(),
        session=session(*rounds),
        floor_ms=0.0054,
        bound=Bound.MEMORY,
        diagnosis=("Bound: memory (simulated counts). Sectors decide.",) if rounds else (),
    )


def prompts() -> dict[str, Prompt]:
    first = finished(0, "first", Relation.FIRST, decided(Action.APPROVE, "", "policy:auto"))
    second = finished(
        1,
        "second",
        Relation.SAME_WORK,
        decided(Action.STEER, "keep the tail\nin one place"),
        decided(Action.REJECT, "unreadable"),
    )
    known = background(first, second)
    broken = Candidate(source=examples.kernel_source("broken"), author="scripted")
    wrong = examples.failed(Verdict.OUT_OF_BOUNDS, "Wrote 4 bytes past the end of the output.", line=2)
    strategy = examples.strategies()[0]
    start = first_prompt(background(), "")
    return {
        "generate": start,
        "optimise": optimise_prompt(known, first, examples.strategies()[2], "keep the tail\nin one place"),
        "diagnose": diagnose_prompt(known, broken, wrong, strategy=strategy, steering=""),
        "repair": repair_prompt(
            known, broken, wrong, strategy=strategy, diagnosis="Line 2 forgets the tail."
        ),
        "retry": retry_prompt(background(), edited_prompt(start, "Write it."), "The answer was empty."),
    }


@pytest.mark.parametrize("name", ["generate", "optimise", "diagnose", "repair", "retry"])
def test_a_prompt_reads_as_its_golden_rendering(name):
    path = GOLDEN / f"{name}.md"
    user = prompts()[name].user
    if os.environ.get("CUTEGEN_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(user, encoding="utf-8")
    assert user == path.read_text(encoding="utf-8")


def test_every_prompt_carries_the_contract_and_a_digest_of_both_parts():
    for prompt in prompts().values():
        assert "class ModelNew(torch.nn.Module)" in prompt.system
        assert prompt.digest == prompt_digest(prompt.system, prompt.user)


def test_what_the_model_is_told_keeps_its_order():
    text = prompts()["optimise"].user
    order = [
        "# The reference",
        "# The workload",
        "# The device",
        "# What is known",
        "# The kernel to start from (r0)",
        "# What was found",
        "# What limits it",
        "# What was tried",
        "# What the person asks",
        "# This round: one strategy",
    ]
    places = [text.index(heading) for heading in order]
    assert places == sorted(places)
    assert "> the person rejected it: unreadable" in text


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
