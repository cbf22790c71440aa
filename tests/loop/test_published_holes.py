"""CuTeGen's published code beside this loop: each hole it shows, and the test that shows ours has none.

Its code is read at the commit named in arXiv 2604.01489's repository; the holes are those of its prompts,
its chain of nodes and what it keeps of them. Holes that no other test is about are tested below.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Correctness, Verdict
from cutegen_nb.core.round import Reply, Usage
from cutegen_nb.core.stage import Stage
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.prompting.library import prompts_folder
from cutegen_nb.testing import examples
from cutegen_nb.testing.examples import failed, passed

TESTS = Path(__file__).parents[1]
HERE = "loop/test_published_holes.py"
HOLES = {
    "an unreadable reply ends the whole task": (
        "loop/test_session.py",
        "test_three_unusable_replies_end_the_round_and_the_session_goes_on",
    ),
    "a failed depth ends the chain": (
        HERE,
        "test_a_round_that_fails_in_every_repair_is_followed_by_the_next",
    ),
    "it goes on from the latest node and not the best": (
        "loop/test_session.py",
        "test_the_next_round_starts_from_the_best_and_not_from_the_latest",
    ),
    "nothing tried before enters the prompt": (
        "loop/test_session.py",
        "test_what_was_rejected_and_why_enters_the_next_prompt",
    ),
    "the plateau is a constant": (
        "loop/test_stages.py",
        "test_a_stage_goes_on_while_it_pays_and_the_next_begins_at_a_plateau",
    ),
    "a time-out's flag is never cleared": (HERE, "test_a_time_out_is_forgotten_by_the_next_candidate"),
    "the fifth repair is never evaluated": (
        "loop/test_session.py",
        "test_repairs_are_bounded_and_each_is_evaluated",
    ),
    "ten rounds are spent on kernels at 95 % of the roof": (
        "loop/test_whole_session.py",
        "test_times_at_the_roof_end_a_session_at_once",
    ),
    "counters of several kernels are mixed and lose their units": (
        HERE,
        "test_counters_of_two_kernels_are_told_apart_and_with_their_units",
    ),
    "prompts ask for a whole file and for JSON only": (HERE, "test_there_is_one_reply_form_in_all_prompts"),
    "the CuTe mode is given the CUDA guide": (
        "prompting/test_names.py",
        "test_every_dotted_name_of_the_dsl_in_a_prompt_exists",
    ),
    "documents for retrieval are shipped and never used": (
        "loop/test_whole_session.py",
        "test_the_guide_is_asked_with_the_source_the_strategy_and_the_error",
    ),
    "no prompt, model, seed or token count is kept": (
        HERE,
        "test_prompt_author_seeds_and_tokens_are_kept_with_each_candidate",
    ),
    "a repair may make the kernel simpler, by the prompt's word alone": (
        "loop/test_whole_session.py",
        "test_a_repair_that_makes_the_kernel_simpler_is_flagged_and_the_author_told",
    ),
}


@pytest.mark.parametrize("hole", HOLES)
def test_each_hole_has_a_test(hole):
    path, name = HOLES[hole]
    tree = ast.parse((TESTS / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_a_round_that_fails_in_every_repair_is_followed_by_the_next(stage, reply_with):
    broken = failed(Verdict.WRONG_VALUES, "Wrong.")
    loop = stage(
        [reply_with("first"), reply_with("b0"), "words", reply_with("b1"), reply_with("good")],
        {"first": passed(1000), "b0": broken, "b1": broken, "good": passed(500)},
    )
    session = loop.run(rounds=3, repairs=1)
    assert [item.approved for item in session.rounds] == [True, False, True]
    assert loop.model.prompts[-1].parent.digest == session.rounds[0].candidate.digest
    assert session.rounds[2].strategy.name != session.rounds[1].strategy.name


def test_a_time_out_is_forgotten_by_the_next_candidate(stage, reply_with):
    slow = failed(Verdict.TIMED_OUT, "It took more than 60 s.")
    loop = stage(
        [reply_with("slow"), "A loop over the grid.", reply_with("cured"), reply_with("better")],
        {"slow": slow, "cured": passed(1000), "better": passed(500)},
    )
    session = loop.run(rounds=2)
    assert [attempt.evaluation and attempt.evaluation.label for attempt in session.rounds[0].attempts] == [
        "TIMED_OUT",
        None,
        "PASSED",
    ]
    assert [item.approved for item in session.rounds] == [True, True]
    assert "TIMED_OUT" not in loop.model.prompts[-1].user


def test_counters_of_two_kernels_are_told_apart_and_with_their_units():
    found = passed(1024)
    first = found.profile.launches[0]
    second = replace(
        first,
        kernel="second",
        grid=(3, 1, 1),
        counters=replace(first.counters, gmem_load_sectors=7, gmem_ideal_sectors=7, smem_wavefronts=40),
    )
    both = replace(found, profile=replace(found.profile, launches=(first, second)))
    text = evaluation_text(both, Candidate(source="x = 1\n", author="x"), Stage.PROFILE)
    one, two = (line for line in text.splitlines() if line.startswith("- kernel"))
    assert "`kernel`, grid (16, 1, 1), block (256, 1, 1): 1,024 global 32-byte sectors" in one
    assert "`second`, grid (3, 1, 1)" in two
    assert "7 global 32-byte sectors" in two
    assert "40 shared wavefronts" in two
    assert "shared wavefronts" not in one


def test_there_is_one_reply_form_in_all_prompts():
    texts = {path.name: path.read_text(encoding="utf-8") for path in prompts_folder().glob("**/*.jinja")}
    assert [name for name, text in texts.items() if "<<<<<<< SEARCH" in text] == ["reply.md.jinja"]
    assert not [name for name, text in texts.items() if "JSON" in text or "line_number" in text]


def test_prompt_author_seeds_and_tokens_are_kept_with_each_candidate(stage, reply_with):
    usage = Usage(input_tokens=1200, output_tokens=300, cost_usd=0.01)
    judged = replace(passed(1000), correctness=Correctness(seeds=(11, 12), outputs=(), checks=("values",)))
    loop = stage([Reply(text=reply_with("first"), usage=usage)], {"first": judged}, menu=())
    loop.run()
    attempt = loop.store.load("relu").rounds[0].attempts[0]
    assert attempt.prompt.user == loop.model.prompts[0].user
    assert attempt.candidate.prompt_digest == attempt.prompt.digest
    assert attempt.candidate.author == "scripted"
    assert attempt.reply.usage == usage
    assert attempt.evaluation.correctness.seeds == (11, 12)
    assert attempt.reply.text.startswith("Rationale")
    assert examples.RELU_SOURCE in attempt.prompt.user
