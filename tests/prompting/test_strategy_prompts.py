"""Requests for words on strategies: cross two kernels', invent one, restate one from its code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.round import Prompt, Reply, Usage
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.search.knowledge import AppliedStrategy
from cutegen_nb.core.session import Plan, PromptPart
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Optimisation, Strategy
from cutegen_nb.prompting.context import PromptContext
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.prompting.strategy_prompts import (
    MemberEvidence,
    ShownOptimisations,
    align_prompt,
    cross_prompt,
    invent_prompt,
    numbered_diff,
)
from cutegen_nb.prompting.strategy_reply import (
    StatedAlignment,
    StatedStrategy,
    parse_alignment,
    parse_strategy,
)
from cutegen_nb.testing import examples

COALESCED = AppliedStrategy(name="coalesce", statement="Neighbours touch neighbours.")
VECTORS = AppliedStrategy(name="vectorise-128", statement="Move 128 bits a thread.")
LOOP = AppliedStrategy(name="grid-stride", statement="Fewer CTAs walk the tensor.")
BASE = MemberEvidence(
    revision="r3",
    standing="1.40× the first kernel's speed, estimated.",
    line=(COALESCED, VECTORS),
    in_force=("coalesced: 100 % of the bytes of its sectors are used", "vectors-128: 99 % of its bytes"),
    lacking=("grid-stride: 4,096 CTAs for 108 multiprocessors",),
    not_told=("loads-in-flight",),
    evaluation="Counts of one call at full size: 262,144 sectors.\n",
    diagnosis=("Bound: memory. Line 12 waits for its loads.",),
)
OTHER = MemberEvidence(
    revision="r5",
    standing="1.15× the first kernel's speed, estimated.",
    line=(COALESCED, LOOP),
    in_force=("coalesced: 100 % of the bytes of its sectors are used", "grid-stride: 216 CTAs"),
    lacking=("vectors-128: 0 % of its bytes",),
)
PARENT = Candidate(source="\n".join(f"line_{n} = {n}" for n in range(1, 16)) + "\n", author="m")
CHANGED = replace(PARENT, source=PARENT.source.replace("line_4 = 4\n", "line_4 = vec\nline_4b = 4\n"))
SHOWN = ShownOptimisations(
    in_force=BASE.in_force, lacking=("grid-stride: 4,096 CTAs",), before=("coalesced: 98 % of its bytes",)
)
STRATEGY = Strategy(name="vectorise-128", statement="Move 128 bits a thread.")


def context(**values) -> PromptContext:
    return PromptContext(
        library=shipped_library(),
        session=examples.session_of(*values.pop("relations", ())),
        zone="Memory decides: the kernel is left of the ridge.",
        **values,
    )


def prompts(**values) -> dict[str, Prompt]:
    facts = context(**values)
    return {
        "cross": cross_prompt(
            facts, BASE, OTHER, PARENT, forbidden=("split-k",), beside=("unroll", "swizzle")
        ),
        "invent": invent_prompt(facts, BASE, PARENT, forbidden=("split-k",), beside=("unroll",)),
        "align": align_prompt(facts, STRATEGY, PARENT, CHANGED, shown=SHOWN),
    }


@pytest.mark.parametrize("name", ["cross", "invent", "align"])
def test_a_request_for_words_reads_as_its_golden_rendering(held, name):
    held(name, prompts()[name].user)


def test_the_standing_words_read_as_their_golden_rendering(held):
    held("words", prompts()["cross"].system)


def test_a_request_for_words_carries_no_contract_for_code_and_says_what_it_is():
    found = prompts()
    for name, prompt in found.items():
        assert prompt.purpose == name
        assert "asks\nfor words only" in prompt.system
        assert "class ModelNew" not in prompt.system
        assert "SEARCH" not in prompt.system + prompt.user
    assert found["cross"].crossed == ("r3", "r5")
    assert found["cross"].parent == found["invent"].parent == PARENT
    assert found["align"].strategy == STRATEGY
    assert [item.stage for item in found.values()] == [Stage.STRUCTURE, Stage.STRUCTURE, None]


def test_a_cross_tells_both_kernels_and_their_differences_and_no_source():
    text = prompts()["cross"].user
    assert text.index("# r3, the kernel to be changed") < text.index("# r5, the other parent")
    assert "line_1 = 1" not in text
    assert (
        "# Where they differ\n\n"
        "- r3 alone carries out the strategies vectorise-128 and the optimisations vectors-128\n"
        "- r5 alone carries out the strategies grid-stride and the optimisations grid-stride\n"
    ) in text
    assert (
        "# Where they differ" not in cross_prompt(context(), BASE, replace(BASE, revision="r4"), PARENT).user
    )


def test_an_invention_sees_the_source_and_the_advice_for_the_class():
    text = prompts()["invent"].user
    assert "# The source of r3\n\n```python\nline_1 = 1\n" in text
    assert "# What such work asks for\n\nEach output depends on its own elements only" in text


@pytest.mark.parametrize("name", ["cross", "invent"])
def test_claims_that_the_figures_neither_show_nor_deny_are_told_apart(name):
    text = prompts()[name].user
    assert "Carried out, as its counts, machine code and source show:\n- coalesced: 100 %" in text
    assert "Not carried out:\n- grid-stride: 4,096 CTAs" in text
    assert "neither show nor deny it: loads-in-flight." in text
    assert "What limits it (lines are those of its file):\nBound: memory." in text


@pytest.mark.parametrize("name", ["cross", "invent"])
def test_what_is_forbidden_or_under_way_or_known_of_like_problems_is_told(name):
    text = prompts(knowledge=("`unroll` made a softmax 1.2× as fast",))[name].user
    assert "The person forbids these strategies, under whatever name: split-k." in text
    assert "Under way beside this one, so not to be stated again: unroll" in text
    assert "# On like problems" in text
    assert "- `unroll` made a softmax 1.2× as fast" in text
    assert "- Memory decides: the kernel is left of the ridge.\n" in text
    facts = context()
    bare = {
        "cross": lambda: cross_prompt(facts, BASE, OTHER, PARENT),
        "invent": lambda: invent_prompt(facts, BASE, PARENT),
    }[name]().user
    for heading in ("# Not to be used", "Under way beside", "# On like problems", "# What was tried"):
        assert heading not in bare


@pytest.mark.parametrize("name", ["cross", "invent"])
@pytest.mark.parametrize(
    ("part", "heading"), [(PromptPart.HISTORY, "# What was tried"), (PromptPart.ROOFLINE, "What limits it")]
)
def test_an_ablation_leaves_its_part_out_of_requests_for_words_too(name, part, heading):
    facts = context(relations=(Relation.FIRST, Relation.LESS_WORK))
    bare = replace(facts, session=replace(facts.session, plan=Plan(without=(part,))))
    for made, told in ((facts, True), (bare, False)):
        prompt = {
            "cross": lambda made=made: cross_prompt(made, BASE, OTHER, PARENT),
            "invent": lambda made=made: invent_prompt(made, BASE, PARENT),
        }[name]()
        assert (heading in prompt.user) is told


@pytest.mark.parametrize("name", ["cross", "invent"])
def test_a_persons_words_come_first_and_are_answered_in_the_statement(name):
    prompt = prompts(steering="no shared memory")[name]
    assert prompt.user.startswith("# What the person asks for, before all else\n\n> no shared memory\n")
    assert "say in the statement what you left out" in prompt.user
    assert prompt.steering == "no shared memory"


def test_an_alignment_asks_for_facts_without_a_persons_words():
    prompt = prompts(steering="say that it uses vectors")["align"]
    assert "say that it uses vectors" not in prompt.user
    assert prompt.steering == ""


def test_an_alignment_shows_the_change_with_the_numbers_of_the_new_file_and_asks_for_what_is_known():
    text = prompts()["align"].user
    assert (
        "   1 | line_1 = 1\n"
        "   2 | line_2 = 2\n"
        "   3 | line_3 = 3\n"
        "-    | line_4 = 4\n"
        "+  4 | line_4 = vec\n"
        "+  5 | line_4b = 4\n"
        "   6 | line_5 = 5\n"
    ) in text
    assert "line_9" not in text
    assert "- carried out: coalesced: 100 %" in text
    assert "- carried out (newly, by this change): vectors-128: 99 %" in text
    assert "- not carried out: grid-stride: 4,096 CTAs" in text
    names = text.partition("Names for `Carries:`")[2].partition("A reply for another kernel")[0]
    assert [item.value for item in Optimisation if f"`{item.value}`" in names] == [
        "coalesced", "vectors-128", "grid-stride",
    ]  # fmt: skip


def test_the_alignment_of_a_first_kernel_shows_the_whole_file_and_every_name():
    text = align_prompt(context(), STRATEGY, None, CHANGED).user
    assert "# The file\n\n```python\nline_1 = 1\n" in text
    assert "line_15 = 15" in text
    assert "# The change" not in text
    assert all(f"`{item.value}`: {item.meaning}" in text for item in Optimisation)


def test_a_diff_of_two_places_has_two_hunks_and_one_of_none_says_so():
    two = CHANGED.source.replace("line_15 = 15", "line_15 = 0")
    assert numbered_diff(PARENT.source, two).count("\n…\n") == 1
    assert numbered_diff(PARENT.source, PARENT.source) == "(no line is changed)"


def test_the_replies_that_the_requests_show_can_be_read():
    """A model copies the example; the reply that it copies has to parse."""
    found = prompts()
    for name in ("cross", "invent"):
        example = found[name].user.rpartition("```\n")[0].rpartition("```\n")[2]
        stated = parse_strategy(Reply(text=example, usage=Usage()))
        assert isinstance(stated, StatedStrategy), stated
        assert stated.brings == (Optimisation.PIPELINED,)
        assert [item.counter for item in stated.effects] == ["latency_ms", "warp_instructions"]
        assert stated.combines == (("narrow-tiles", "two-stage-copies") if name == "cross" else ())
    example = found["align"].user.rpartition("```\n")[0].rpartition("```\n")[2]
    assert parse_alignment(Reply(text=example, usage=Usage())) == StatedAlignment(
        statement=example.splitlines()[0].removeprefix("Done: "),
        carries=(Optimisation.VECTORS,),
        not_done="stores stay scalar.",
    )


def test_a_library_policy_and_three_products_for_one_bound_what_a_strategy_may_ask_for():
    facts = context()
    plain = invent_prompt(facts, BASE, PARENT).system
    assert "PyTorch computes no part of the result" in plain
    assert "only by three products\nof TF32 (3×TF32) or of scaled fp16 parts for one" in plain
    problem = replace(facts.session.problem, library=(LibraryFamily.CONV,))
    allowed = replace(facts, session=replace(facts.session, problem=problem))
    assert "PyTorch may compute convolutions" in invent_prompt(allowed, BASE, PARENT).system


@pytest.mark.parametrize("workload_class", list(WorkloadClass))
def test_an_invention_can_be_asked_for_every_class_of_work(workload_class):
    facts = context()
    facts = replace(
        facts,
        session=replace(facts.session, facts=replace(facts.session.facts, workload_class=workload_class)),
    )
    advice = invent_prompt(facts, BASE, PARENT).user.partition("# What such work asks for\n\n")[2]
    assert len(advice.partition("# The reply")[0]) > 300
