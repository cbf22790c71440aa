"""Rows that stay in shared memory, of one CTA or of a cluster's: menus, results, sectors, registers."""

from __future__ import annotations

import pytest

from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

PROBLEM = """import torch
from torch.nn import functional
def reference(x): return {value}
def get_inputs(): return [torch.rand({rows}, {cols})]
"""
SOFTMAX = "torch.softmax(x, 1)"
L1_NORM = "x / x.abs().mean(1, keepdim=True)"
LAYER_NORM = "functional.layer_norm(x, x.shape[1:])"


def steps(value, rows, cols):
    source = PROBLEM.format(value=value, rows=rows, cols=cols)
    problem = Problem(name="rows", source=source, form=ProblemForm.FUNCTION, function="reference")
    return {item.name: item.architectures for item in OfflineAuthor().menu(trace_facts(problem))}


@pytest.mark.parametrize(
    ("value", "rows", "cols", "kept_by"),
    [
        (SOFTMAX, 4096, 393216, "row-in-cluster"),
        (SOFTMAX, 4096, 20000, "row-in-shared-memory"),
        (SOFTMAX, 4096, 8192, ""),
        (SOFTMAX, 2, 393216, ""),
        (SOFTMAX, 4096, 2**23, ""),
        (LAYER_NORM, 16, 2**22, "row-in-cluster"),
        ("x.sum(1)", 4096, 393216, ""),
    ],
)
def test_a_row_that_is_read_twice_is_kept_where_it_fits(value, rows, cols, kept_by):
    found = steps(value, rows, cols)
    assert found.keys() & {"row-in-cluster", "row-in-shared-memory"} == {kept_by} - {""}
    # One pass over a row is what a GPU without clusters gets in its stead.
    assert bool(found.get("one-pass")) == (kept_by == "row-in-cluster")


def test_a_row_too_long_for_a_cluster_is_offered_more_of_the_gpu():
    found = steps(LAYER_NORM, 16, 2**22)
    assert found["row-over-grid"] == found["row-in-cluster"]
    assert list(found).index("row-over-grid") == list(found).index("row-in-cluster") + 1
    # A cluster keeps rows of 1.5 MB whole; rows of an odd length begin anywhere in a vector.
    assert "row-over-grid" not in steps(SOFTMAX, 4096, 393216)
    assert "row-over-grid" not in steps(LAYER_NORM, 16, 2**22 - 1)


@pytest.mark.long
def test_the_kept_row_is_within_three_rounds():
    for value, rows, cols in [(SOFTMAX, 4096, 393216), (L1_NORM, 32768, 65535), (LAYER_NORM, 16, 2**22)]:
        assert list(steps(value, rows, cols)).index("row-in-cluster") < 2


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("value", "rows", "cols", "first"),
    [
        (SOFTMAX, 4096, 4096, "cta-per-row"),
        (SOFTMAX, 2**17, 1024, "warp-per-row"),
        (SOFTMAX, 4096, 2**14, "vectorise-128"),
        (SOFTMAX, 2**15, 2**11, "vectorise-128"),
        ("x.sum(1)", 2**17, 2**13, "vectorise-128"),
    ],
)
def test_one_thread_a_row_is_the_start_of_small_tensors_and_of_many_short_rows(value, rows, cols, first):
    assert next(iter(steps(value, rows, cols))) == first


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("value", "cols"), [(SOFTMAX, 100000), (L1_NORM, 100001)])
def test_a_cluster_reads_each_row_once(hopper_simulator, value, cols):
    source = PROBLEM.format(value=value, rows=1024, cols=cols)
    answer = hopper_simulator.ask("rows", source, steps=[-2, -1])
    before, last = answer["revisions"]
    assert last["applied"][-1] == "row-in-cluster"
    assert last["verdict"] == "right"
    assert last["counters"]["sectors"] < 0.6 * before["counters"]["sectors"]


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("cols", [80000, 80003])
@pytest.mark.parametrize("value", [LAYER_NORM, SOFTMAX, L1_NORM])
def test_a_row_that_does_not_fit_is_kept_in_part(hopper_simulator, value, cols):
    # A vector for each of 1024 threads; a thread has two.
    source = PROBLEM.format(value=value, rows=4, cols=cols)
    answer = hopper_simulator.ask("rows", source, steps=[-2, -1], room=16384)
    by_step = {"".join(item["applied"][-1:]): item["verdict"] for item in answer["revisions"]}
    assert by_step["row-in-cluster"] == "right"
    assert by_step.get("row-over-grid") == ("right" if cols % 4 == 0 else None)


@pytest.mark.slow
@pytest.mark.parametrize("value", [LAYER_NORM, pytest.param(SOFTMAX, marks=pytest.mark.long)])
def test_the_ctas_of_a_row_meet_and_load_the_next_row_ahead(hopper_simulator, value):
    source = PROBLEM.format(value=value, rows=7, cols=40000)
    (last,) = hopper_simulator.ask("rows", source, steps=[-1], room=2048)["revisions"]
    assert (last["applied"][-1], last["verdict"]) == ("row-over-grid", "right")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("cols", [20000, 20001])
def test_one_cta_keeps_a_row_without_a_cluster(offline_simulator, cols):
    source = PROBLEM.format(value=SOFTMAX, rows=4096, cols=cols)
    (last,) = offline_simulator.ask("rows", source, steps=[-1])["revisions"]
    assert (last["applied"][-1], last["verdict"]) == ("row-in-shared-memory", "right")
