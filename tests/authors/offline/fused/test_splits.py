"""Strided reductions whose rows several CTAs share: menus, numbers of splits, results."""

from __future__ import annotations

import re

import pytest

from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

PROBLEM = """import torch
def reference(x): return {value}
def get_inputs(): return [torch.rand({shape})]
"""
FULL = (128, 4096, 4095)


def given(value, shape):
    source = PROBLEM.format(value=value, shape=", ".join(map(str, shape)))
    problem = Problem(name="splits", source=source, form=ProblemForm.FUNCTION, function="reference")
    return problem, trace_facts(problem)


@pytest.mark.parametrize(
    ("value", "shape", "names"),
    [
        ("x.sum(1)", FULL, "split-reduction vectors-in-flight"),
        ("x.argmax(1)", FULL, "split-reduction vectors-in-flight"),
        ("x.amin(1)", (128, 4096, 4096), "vectorise-128 split-reduction vectors-in-flight"),
        ("x.sum(1)", (128, 512, 4095), "vectors-in-flight"),
        ("x.sum(1)", (4096, 1024, 1025), "vectors-in-flight"),
        ("x / x.sum(1, keepdim=True)", FULL, "vectors-in-flight"),
        ("x.sum(0)", (65536, 1023), "split-reduction vectors-in-flight"),
        ("x.var(0)", (16384, 4096), "one-pass split-reduction vectorise-128 vectors-in-flight"),
    ],
)
def test_a_split_is_offered_where_threads_are_few_or_their_waves_are(value, shape, names):
    menu = OfflineAuthor().menu(given(value, shape)[1])
    assert " ".join(item.name for item in menu) == names


@pytest.mark.first(1)
@pytest.mark.parametrize(("batch", "split"), [(16384, True), (1024, False)])
def test_a_large_norm_over_the_batch_behind_a_product_is_split_from_the_start(batch, split):
    value = "(lambda y: (y - y.mean(0)) / y.std(0))(x @ x.new_ones(512, 4096))"
    problem, facts = given(value, (batch, 512))
    assert ("splits = max(" in OperatorsWriter().write(problem, facts, ()).source) == split


@pytest.mark.parametrize(
    ("shape", "splits", "threads"), [(FULL, 8, 512), ((128, 4096, 513), 16, 512), ((65536, 1023), 264, 256)]
)
def test_the_host_asks_for_sixteen_waves_or_for_one_where_rows_are_few(shape, splits, threads):
    dim = len(shape) - 2
    problem, facts = given(f"x.sum({dim})", shape)
    source = OperatorsWriter().write(problem, facts, ("split-reduction",)).source
    least, wanted = map(int, re.search(r"min\(cols // (\d+), (\d+) // rows\)", source).groups())
    rows = shape[-1] * (shape[0] if dim else 1)
    assert min(shape[dim] // least, wanted // rows) == splits
    assert f"\nTHREADS = {threads}\n" in source


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    ["x.mean(1)", *(pytest.param(f"x.{how}(1)", marks=pytest.mark.long) for how in ("argmax", "amin"))],
)
def test_every_revision_of_a_strided_reduction_is_right(offline_simulator, value):
    source = PROBLEM.format(value=value, shape="300, 1100, 601")
    revisions = offline_simulator.ask("splits", source, columns=8)["revisions"]
    assert [entry["verdict"] for entry in revisions] == ["right"] * 3
