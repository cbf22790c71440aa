"""Golden renderings: run with CUTEGEN_UPDATE_GOLDEN=1 to write them again, then read the diff."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.evaluation import Verdict
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.ports import GuideRequest
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Plan, PromptPart, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Direction, ExpectedEffect, Strategy, StrategySource
from cutegen_nb.prompting.context import ParentRevision, PromptContext
from cutegen_nb.prompting.library import PromptLibrary, fenced, quoted, shipped_library
from cutegen_nb.prompting.render import (
    class_advice,
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


def background(*rounds: Round, **values) -> PromptContext:
    return PromptContext(
        library=shipped_library(),
        session=session(*rounds),
        floors=("at least 0.0054 ms at full size: its bytes at the bandwidth of NVIDIA A100",),
        ceilings=("fp32 on CUDA cores 19.5 TFLOP/s",),
        diagnosis=("Bound: memory (simulated counts). Sectors decide.",) if rounds else (),
        **values,
    )


def parent(item: Round) -> ParentRevision:
    return ParentRevision(revision=f"r{item.number}", candidate=item.candidate, evaluation=item.evaluation)


def vectors_section(request: GuideRequest) -> str:
    return f"## Vectors\n\n{request.strategy or request.error[:20]}" if request.source else ""


WORDS = "keep the tail\nin one place"


def known() -> PromptContext:
    """Facts of a second round, without words of a person."""
    first = finished(0, "first", Relation.FIRST, decided(Action.APPROVE, "", "policy:auto"))
    second = finished(
        1, "second", Relation.SAME_WORK, decided(Action.STEER, WORDS), decided(Action.REJECT, "unreadable")
    )
    return background(
        first,
        second,
        resources=("`kernel`: 32 registers a thread",),
        scores={1: ("the strategy: `gmem_load_sectors` down: 1,024 → 1,024 (0 %), did not hold",)},
        guide=vectors_section,
        knowledge=("`vectorise-128` made a softmax of 4096 × 1024 floats 1.31× as fast (H200, measured)",),
    )


BROKEN = Candidate(source=examples.kernel_source("broken"), author="scripted")
PAST_THE_END = examples.failed(Verdict.OUT_OF_BOUNDS, "Wrote 4 bytes past the end of the output.", line=2)


def prompts() -> dict[str, Prompt]:
    facts = known()
    first = parent(facts.session.rounds[0])
    strategy, _, unroll = examples.strategies()
    steered = replace(facts, steering=WORDS)
    start = first_prompt(background())
    because = "2 rounds in a row brought no gain"
    return {
        "generate": start,
        "optimise": optimise_prompt(steered, first, unroll),
        "profile": optimise_prompt(facts, first, strategy, stage=Stage.PROFILE, because=because),
        "tune": optimise_prompt(facts, first, unroll, stage=Stage.TUNE, because=because),
        "diagnose": diagnose_prompt(facts, BROKEN, PAST_THE_END, strategy=strategy),
        "repair": repair_prompt(
            facts,
            BROKEN,
            PAST_THE_END,
            strategy=strategy,
            diagnosis="Line 2 forgets the tail.",
            flagged=["The repair no longer uses vector copies."],
        ),
        "retry": retry_prompt(
            background(), edited_prompt(start, "Write it."), "The answer holds no code.", "Use ``` tiles.\n"
        ),
    }


@pytest.mark.parametrize("name", sorted(prompts()))
def test_a_prompt_reads_as_its_golden_rendering(held, name):
    held(name, prompts()[name].user)


def test_the_contract_reads_as_its_golden_rendering(held):
    held("contract", prompts()["generate"].system)


def test_every_prompt_carries_the_contract_and_a_digest_of_both_parts():
    for prompt in prompts().values():
        assert "class ModelNew(torch.nn.Module)" in prompt.system
        assert "# The reply" in prompt.system
        assert prompt.digest == prompt_digest(prompt.system, prompt.user)
        assert prompt.templates == ""


ORDER = [
    "# What the person asks for",
    "# This round: ",
    "# What was found of r0",
    "What the compiler made of it:",
    "# What limits it",
    "# What was tried",
    "# On like problems",
    "# The source of r0",
    "# The reference",
    "# The workload",
    "# The device",
    "# What is known of the work",
    "# From the CuTe DSL guide",
]


@pytest.mark.parametrize("stage", [Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE])
def test_a_request_begins_with_the_task_and_the_findings_and_ends_with_the_guide(stage):
    facts = replace(known(), steering=WORDS)
    text = optimise_prompt(facts, parent(facts.session.rounds[0]), examples.strategies()[0], stage=stage).user
    places = [text.index(heading) for heading in ORDER]
    assert places == sorted(places)
    assert text.startswith(ORDER[0])
    assert "> the person rejected it: unreadable" in text


def every_request(facts: PromptContext) -> dict[str, str]:
    first, strategy = parent(facts.session.rounds[0]), examples.strategies()[0]
    return {
        "generate": first_prompt(facts).user,
        **{
            stage.value: optimise_prompt(facts, first, strategy, stage=stage).user
            for stage in (Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE)
        },
        "diagnose": diagnose_prompt(facts, BROKEN, PAST_THE_END, strategy=strategy).user,
        "repair": repair_prompt(facts, BROKEN, PAST_THE_END, strategy=strategy, diagnosis="x").user,
    }


def test_a_persons_words_come_first_in_every_request_and_outrank_the_strategy():
    steered = every_request(replace(known(), steering="64 threads\nno shared memory"))
    for name, text in steered.items():
        assert text.startswith("# What the person asks for, before all else\n\n> 64 threads\n> no shared"), (
            name
        )
        assert "These words come first" in text, name
    # What would bind the author to the strategy alone is left out beside a person's words.
    plain = every_request(known())
    for name, binding in (
        ("structure", "Carry out this strategy and no other."),
        ("tune", "and nothing else: no other algorithm, no other memory"),
    ):
        assert binding in plain[name]
        assert binding not in steered[name]
    assert "what the person and the strategy ask for and no more" in " ".join(steered["profile"].split())
    assert "what the strategy names and no more" in " ".join(plain["profile"].split())
    assert "stays, as far as the person's words allow:" in steered["repair"]
    assert all("the person asks for" not in text for text in plain.values())


def test_a_persons_words_are_recorded_with_the_prompt_and_survive_a_repetition():
    facts = replace(known(), steering=WORDS)
    prompt = optimise_prompt(facts, parent(facts.session.rounds[0]), examples.strategies()[0])
    assert prompt.steering == WORDS
    again = retry_prompt(facts, prompt, "The answer was empty.", "")
    assert (again.steering, again.strategy, again.parent, again.stage) == (
        WORDS, prompt.strategy, prompt.parent, prompt.stage,
    )  # fmt: skip
    assert again.purpose == "reply"


def test_a_strategy_of_the_library_may_be_ended_with_a_reason_and_says_what_follows():
    facts = known()
    first, strategy = parent(facts.session.rounds[0]), examples.strategies()[0]
    chain = optimise_prompt(facts, first, strategy).user
    slot = optimise_prompt(facts, first, strategy, in_slot=True).user
    for text in (chain, slot):
        assert "`Strategy: already done — because …` or `Strategy: cannot apply — because …`" in text
    assert "The reason is recorded and the next strategy is asked for." in chain
    assert "The reason is recorded and this slot ends." in slot


@pytest.mark.parametrize("source", [one for one in StrategySource if one is not StrategySource.LIBRARY])
@pytest.mark.parametrize("stage", [Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE])
def test_the_words_of_a_stated_strategy_decide_what_changes(source, stage):
    facts = known()
    first = parent(facts.session.rounds[0])
    own = replace(examples.strategies()[0], source=source.value)
    stated = optimise_prompt(facts, first, own, stage=stage).user
    assert "words decide what changes" in stated
    assert "numbers only" not in stated
    assert (
        "words decide what changes"
        not in optimise_prompt(facts, first, examples.strategies()[0], stage=stage).user
    )


def test_conditions_of_a_strategy_in_words_are_told():
    facts = known()
    strategy = replace(examples.strategies()[0], preconditions=("pointers aligned to 16 bytes",))
    text = optimise_prompt(facts, parent(facts.session.rounds[0]), strategy).user
    assert "It needs: pointers aligned to 16 bytes. Shapes that do not have that keep a correct path." in text
    assert "It should move: `gmem_load_sectors` down." in text


def test_an_unusable_answer_is_quoted_at_both_ends_inside_a_longer_fence():
    prompt = edited_prompt(first_prompt(background()), "Write it.")
    text = retry_prompt(background(), prompt, "No code.", "````\nhead" + "x" * 20_000 + "tail").user
    assert "`````\n````\nhead" in text
    assert "tail\n`````\n" in text
    assert "\n[… 14,013 characters left out …]\n" in text
    assert len(text) < 7_000
    assert text.endswith("The request was:\n\nWrite it.\n")
    assert "It was:" not in retry_prompt(background(), prompt, "The answer was empty.", " \n").user
    retry_prompt(background(), prompt, "Not text.", "half \ud83d").user.encode()


LIBRARY = (LibraryFamily.CONV, LibraryFamily.MATMUL)


def with_library(facts: PromptContext) -> PromptContext:
    problem = replace(facts.session.problem, library=LIBRARY)
    return replace(facts, session=replace(facts.session, problem=problem))


def test_a_library_policy_is_in_the_contract_and_in_the_words_on_work_that_is_not_the_kernels():
    allowed = with_library(background())
    parts = "convolutions (`torch.nn.Conv2d`, `torch.nn.functional.conv_transpose2d` …) and matrix products"
    assert parts in first_prompt(allowed).system
    assert "at\n   least one kernel does a part of the problem" in first_prompt(allowed).system
    assert "may not compute any part of the result, with one exception:" in first_prompt(allowed).system
    plain = first_prompt(background()).system
    assert "may not compute any part of the result.\n3. Allocate" in plain
    assert "PyTorch may compute" not in plain
    not_own = examples.failed(Verdict.NOT_OWN_WORK, "PyTorch did it.", line=1)
    for facts, said in ((allowed, True), (background(), False)):
        text = diagnose_prompt(facts, BROKEN, not_own, strategy=None).user
        assert ("By this problem's policy PyTorch may compute convolutions" in text) is said


def test_a_contract_breach_names_what_a_policy_leaves_to_pytorch():
    found = examples.failed(Verdict.WRONG_SHAPE, "Another shape.", line=1)
    assert (
        "no torch arithmetic but convolutions"
        in diagnose_prompt(with_library(background()), BROKEN, found, strategy=None).user
    )
    assert (
        "no torch arithmetic, no result kept"
        in diagnose_prompt(background(), BROKEN, found, strategy=None).user
    )


def test_three_products_for_one_are_allowed_in_the_contract_and_taught_for_fp32_products():
    contract = first_prompt(background()).system
    assert (
        "three\n   products of TF32 (3×TF32) or of scaled fp16 parts, which keep fp32's accuracy, are allowed"
        in contract
    )
    for dtype, taught in (("float32", True), ("float16", False), ("bfloat16", False)):
        facts = replace(examples.relu_facts(), workload_class=WorkloadClass.MATMUL, dtype=dtype)
        context = replace(
            background(), session=replace(session(), facts=facts), extents={"m": 4096, "n": 4096, "k": 4096}
        )
        assert ("3×TF32" in first_prompt(context).user) is taught, dtype


def test_a_gpus_request_states_that_gpu_and_a_simulators_the_one_it_estimates_for():
    h200 = Device(
        kind=DeviceKind.GPU, name="NVIDIA H200", architecture="sm_90a", bandwidth_bytes_per_s=4.8e12,
        peak_flops={}, source="NVIDIA H200 data sheet", sm_count=132,
    )  # fmt: skip
    estimated = first_prompt(replace(background(), device=h200)).user.split("# The device\n\n")[1]
    assert estimated.startswith("No GPU: the kernel is compiled for sm_80")
    assert "times are estimated for NVIDIA H200" in estimated.split("\n- ")[0]
    assert "- DRAM 4.80 TB/s, read and write together; 132 SMs\n" in estimated
    assert "- from: NVIDIA H200 data sheet\n" in estimated
    measured = first_prompt(replace(background(), session=replace(session(), device=h200))).user
    assert measured.split("# The device\n\n")[1].startswith("NVIDIA H200, sm_90a.\n- DRAM")
    assert "Values are judged at this smaller size" not in measured
    assert "Values are judged at this smaller size" in first_prompt(background()).user


def test_an_ablation_without_history_tells_no_earlier_rounds():
    facts = known()
    bare = replace(facts, session=replace(facts.session, plan=Plan(without=(PromptPart.HISTORY,))))
    first, strategy = parent(facts.session.rounds[0]), examples.strategies()[0]
    assert "# What was tried" in optimise_prompt(facts, first, strategy).user
    assert "# What was tried" not in optimise_prompt(bare, first, strategy).user


def test_counters_by_launch_enter_with_the_stage_that_asks_for_them():
    found = prompts()
    for name in ("profile", "tune"):
        assert "kernel `kernel`, grid (16, 1, 1)" in found[name].user
    assert "kernel `kernel`, grid" not in found["optimise"].user
    assert "1,024 global 32-byte sectors" in found["optimise"].user


@pytest.mark.parametrize("workload_class", list(WorkloadClass))
def test_every_class_of_work_has_words_of_its_own(workload_class):
    facts = replace(examples.relu_facts(), workload_class=workload_class)
    facts = replace(background(), session=replace(session(), facts=facts))
    assert shipped_library().has(class_template(workload_class))
    advice = first_prompt(facts).user.split("# What such work asks for in later rounds\n\n")[1]
    assert 400 < len(advice) < 3000


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
    bare = told("<think>only this")
    assert "# The diagnosis" not in bare
    assert "Say first, in a few sentences, what is wrong" in bare
    assert "Cure what the diagnosis names" not in bare


def test_a_fused_graph_is_told_what_its_dominant_part_asks_for_as_well():
    facts = replace(
        examples.relu_facts(),
        workload_class=WorkloadClass.FUSED,
        parts=(WorkloadClass.MATMUL, WorkloadClass.NORM),
    )
    text = first_prompt(replace(background(), session=replace(session(), facts=facts))).user
    assert "class: fused (matrix product, norm)" in text
    assert "Draw the graph first" in text
    assert "Reuse in three levels" in text


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.PASSED])
def test_every_verdict_has_a_way_to_be_found(verdict):
    broken = Candidate(source=examples.kernel_source("broken"), author="scripted")
    found = examples.failed(verdict, "It failed.", line=1)
    prompt = diagnose_prompt(background(), broken, found, strategy=None)
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
    facts = replace(background(), library=PromptLibrary(own=tmp_path))
    prompt = first_prompt(facts)
    assert "Mind the tail, float32." in prompt.user
    assert "# This round: a first kernel" in prompt.user
    assert prompt.templates == facts.library.own_digest != ""
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


def test_a_quotation_marks_each_line():
    assert quoted("one\n\n two \n") == "> one\n>\n>  two\n"


def test_a_fence_is_longer_than_any_inside():
    assert fenced("````\nx\n````", "python").startswith("`````python\n")


def test_a_source_with_template_marks_is_not_rendered():
    problem = replace(examples.relu_problem(), source="# {{ 1 + 1 }} {% raw %}\nclass Model: ...\n")
    facts = replace(background(), session=replace(session(), problem=problem))
    assert "{{ 1 + 1 }} {% raw %}" in first_prompt(facts).user


EXTENTS = {
    "nothing known": {},
    "few long rows": {"rows": 64, "columns": 100_000},
    "many short rows": {"rows": 100_000, "columns": 96},
    "one row": {"rows": 1, "columns": 1 << 20},
    "a small product": {"batch": 1, "m": 128, "n": 128, "k": 4096},
    "many products": {"batch": 64, "m": 512, "n": 512, "k": 64, "rows": 32_768, "columns": 512, "head": 64},
    "a wide head": {"batch": 8, "m": 4096, "n": 4096, "k": 1024, "head": 1024},
    "a vector": {"batch": 1, "m": 1, "n": 4096, "k": 4096},
}


@pytest.mark.parametrize("case", EXTENTS)
@pytest.mark.parametrize("workload_class", list(WorkloadClass))
def test_advice_reckons_with_the_extents_that_are_known_and_invents_none(workload_class, case):
    extents = defaultdict(int, EXTENTS[case])
    device = replace(examples.simulated_device(), sm_count=132)
    for dtype in ("float32", "float16"):
        facts = replace(examples.relu_facts(), workload_class=workload_class, dtype=dtype)
        context = replace(
            background(), session=replace(session(), facts=facts), extents=extents, device=device
        )
        advice = first_prompt(context).user.partition("in later rounds\n\n")[2]
        for wrong in (r"\b0 (rows|tiles|outputs|SMs)\b", r"\b-\d", r"\bNone\b", r"\{", r"Head size 0"):
            assert not re.search(wrong, advice), (wrong, advice)
        for line in advice.splitlines():
            assert line == line.rstrip(), line
        if not EXTENTS[case]:
            assert "Here:" not in advice


@pytest.mark.parametrize(
    ("workload_class", "case", "said"),
    [
        (WorkloadClass.MATMUL, "a small product", "M 128, N 128, K 4096: 1 tile of 128×128 for 132 SMs, so smaller tiles or split K."),
        (WorkloadClass.MATMUL, "many products", "64 × M 512, N 512, K 64: 1024 tiles of 128×128 for 132 SMs.\n"),
        (WorkloadClass.MATMUL, "a vector", "Very small M or N is a matrix–vector product"),
        (WorkloadClass.ATTENTION, "a wide head", "Head size 1024: 64 rows of fp32 output would be 256 KiB of registers"),
        (WorkloadClass.SOFTMAX, "few long rows", "64 rows of 100,000 for 132 SMs: with a CTA a row 68 of them idle,"),
        (WorkloadClass.SOFTMAX, "few long rows", "a row does not fit the registers of\n  a CTA (1024 threads × 32 values)"),
        (WorkloadClass.SOFTMAX, "many short rows", "Rows of 96: a warp a row, several rows a CTA"),
        (WorkloadClass.NORM, "one row", "1 row of 1,048,576 for 132 SMs: with a CTA a row 131 of them idle,"),
        (WorkloadClass.REDUCTION, "one row", "1 output of 1,048,576 elements each for 132 SMs."),
    ],
)  # fmt: skip
def test_advice_names_what_the_extents_ask_for(workload_class, case, said):
    facts = replace(examples.relu_facts(), workload_class=workload_class)
    device = replace(examples.simulated_device(), sm_count=132)
    context = replace(
        background(),
        session=replace(session(), facts=facts),
        extents=defaultdict(int, EXTENTS[case]),
        device=device,
    )
    assert said in first_prompt(context).user


def advised(workload_class, rows, columns):
    """Advice of a request for a problem of so many rows on 132 multiprocessors."""
    facts = replace(examples.relu_facts(), workload_class=workload_class)
    context = replace(
        background(),
        session=replace(session(), facts=facts),
        extents=defaultdict(int, rows=rows, columns=columns),
        device=replace(examples.simulated_device(), sm_count=132),
    )
    return class_advice(context)


@pytest.mark.parametrize("workload_class", [WorkloadClass.SOFTMAX, WorkloadClass.NORM])
@pytest.mark.parametrize(
    ("rows", "columns", "splits", "held"),
    [
        (16, 96, False, "96 elements, 3 values a thread with a warp a row"),
        (16, 4096, False, "4,096 elements, 16 values a thread with 256 threads a row"),
        (16, 1, False, "1 element, 1 value a thread with a warp a row"),
        (16, 4_194_304, True, ""),
        (4096, 30_000, False, "30,000 elements, 30 values a thread with 1024 threads a row"),
        (4096, 393_216, False, ""),
    ],
)
def test_a_row_is_split_over_ctas_or_kept_in_registers_and_never_both(
    workload_class, rows, columns, splits, held
):
    text = advised(workload_class, rows, columns)
    assert ("several CTAs" in text) is splits
    assert ("in registers" in text) is bool(held)
    assert held in text
    assert not (splits and ": a CTA a row" in text)
    assert not ("a warp a row" in text and ": a CTA a row" in text)


def test_strategies_beside_this_slot_have_a_heading():
    text = background().library.render("history", tried="", knowledge="", beside=("split-k", "wide"))
    assert text.startswith("# What other slots of this epoch do\n\nUnder way beside this one")


PLAIN = Strategy(name="own", statement="Move 128 bits a thread.")
FULL = replace(
    PLAIN,
    preconditions=("aligned rows",),
    effects=(ExpectedEffect(counter="latency_ms", direction=Direction.DOWN),),
)


@pytest.mark.parametrize("strategy", [PLAIN, FULL])
def test_the_way_out_of_a_strategy_is_a_paragraph_of_its_own(strategy):
    text = background().library.render("strategy", strategy=strategy, in_slot=False, steering="")
    assert "\n\nShould the kernel carry this strategy out already" in text
    assert "\n\n\n" not in text
