"""The offline author as the loop sees it: menus, replies, and what a generated file is made of."""

import ast
import asyncio

import pytest

from cutegen_nb.analysis.history.lineage_graph import lineage
from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.authors.offline.constructor import constructor
from cutegen_nb.authors.offline.expressions.expressions import (
    Apply,
    Leaf,
    ValueType,
    apply,
    body,
    cast,
    grouped,
    number,
)
from cutegen_nb.authors.offline.fused.lowering import Axis, SplitNeededError, regroup
from cutegen_nb.authors.offline.graph.ir import Extent
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.round import Attempt, Prompt, Round
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.evaluator.problem.trace import trace_facts

RELU = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(4096, 8192)]

def get_init_inputs():
    return []
"""
DEVICE = Device(
    kind=DeviceKind.SIMULATOR,
    name="simulated",
    architecture="sm_80",
    bandwidth_bytes_per_s=1.0,
    peak_flops={},
    source="test",
)


def problem(source):
    return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH)


def session(source, *rounds):
    return Session(
        name="s",
        problem=problem(source),
        facts=trace_facts(problem(source)),
        device=DEVICE,
        author="offline",
        budget=Budget(),
        created_at="",
        rounds=rounds,
    )


def finished(number, candidate, prompt):
    attempt = Attempt(purpose="optimise", prompt=prompt, reply=None, candidate=candidate)
    return Round(
        number=number,
        stage=Stage.STRUCTURE,
        strategy=candidate.strategy,
        attempts=(attempt,),
        comparison=None,
        decisions=(),
        started_at="",
        seconds=0.0,
    )


def written(author, given, strategy=None, parent=None):
    prompt = Prompt(system="", user="", digest="", strategy=strategy, parent=parent)
    reply = asyncio.run(author.write(prompt, given, lambda _: None))
    return reply.text, reply.text.partition("```python\n")[2].rpartition("```")[0]


def test_a_reply_is_a_rationale_a_prediction_and_one_file():
    text, source = written(OfflineAuthor(), session(RELU))
    rationale, prediction = text.split("\n\n")[:2]
    assert rationale
    assert prediction.startswith("Predicted effect: ")
    names = {item.name for item in ast.parse(source).body if isinstance(item, ast.ClassDef)}
    assert names == {"ModelNew"}
    assert "@cute.kernel" in source


def test_a_strategy_is_added_to_those_of_the_ancestors_and_of_no_one_else():
    author, given = OfflineAuthor(), session(RELU)
    coalesced, vectors, *_ = author.menu(given.facts)
    prompt = Prompt(system="", user="", digest="")
    first = Candidate(source="a", author="offline")
    second = Candidate(source="b", author="offline", parents=(first.digest,), strategy=coalesced)
    rejected = Candidate(source="c", author="offline", parents=(second.digest,), strategy=vectors)
    rounds = [finished(at, item, prompt) for at, item in enumerate((first, second, rejected))]
    given = session(RELU, *rounds)
    assert lineage(second, given) == ("coalesced",)
    text, source = written(author, given, vectors, second)
    assert "gmem_requests down" in text
    assert "coalesced, vectorise-128" in source
    assert "autovec_copy" in source


@pytest.mark.parametrize(
    ("changes", "said"), [({"purpose": "repair"}, "cannot repair"), ({"parent": "person"}, "by person")]
)
def test_what_would_be_the_same_file_or_undo_another_s_work_is_declined(changes, said):
    if "parent" in changes:
        changes = {"parent": Candidate(source="theirs", author=changes["parent"])}
    prompt = Prompt(system="", user="", digest="", **changes)
    with pytest.raises(Declined, match=said):
        asyncio.run(OfflineAuthor().write(prompt, session(RELU), lambda _: None))


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("torch.relu(x)", "coalesced vectorise-128 vectors-in-flight grid-stride"),
        ("torch.softmax(x, 1)", "cta-per-row vectorise-128 one-pass"),
        ("torch.softmax(x[:, :64], 1)", "warp-per-row vectorise-128 one-pass"),
        ("torch.softmax(x.half(), 0)", "one-pass vectorise-128 split-reduction vectors-in-flight"),
        ("nn.functional.layer_norm(x.half(), x.shape)", "coalesced vectorise-128 one-pass vectors-in-flight"),
        ("x.sum(1)", "cta-per-row vectorise-128 vectors-in-flight"),
        ("x.mean()", "coalesced vectorise-128 vectors-in-flight"),
    ],
)
def test_the_menu_follows_from_what_is_reduced_and_where_it_lies(value, names):
    assert (
        " ".join(
            item.name for item in OfflineAuthor().menu(session(RELU.replace("torch.relu(x)", value)).facts)
        )
        == names
    )


@pytest.mark.parametrize("value", ["torch.relu(x)", "torch.softmax(x, 1)", "x.sum(0)", "x.mean()"])
def test_every_strategy_of_a_menu_changes_the_file_and_names_counters_that_exist(value):
    author, given = OfflineAuthor(), session(RELU.replace("torch.relu(x)", value))
    menu = author.menu(given.facts)
    fields = {*Counters.__dataclass_fields__, "latency_ms"}
    parent, sources = None, []
    rounds = []
    for strategy in (None, *menu):
        current = session(given.problem.source, *rounds)
        sources.append(written(author, current, strategy, parent)[1].partition('"""\n\n')[2])
        parents = (parent.digest,) if parent else ()
        parent = Candidate(source=sources[-1], author="offline", parents=parents, strategy=strategy)
        rounds.append(finished(len(rounds), parent, Prompt(system="", user="", digest="")))
    assert len(set(sources)) == len(sources)
    assert {effect.counter for strategy in menu for effect in strategy.effects} <= fields


def test_forward_of_a_file_computes_nothing_with_torch():
    _, source = written(OfflineAuthor(), session(RELU))
    forward = source.partition("def forward")[2]
    assert "torch.relu" not in source
    assert {word for word in ("torch.empty_like", "self.launch") if word in forward} == {
        "torch.empty_like",
        "self.launch",
    }


def test_the_constructor_is_the_reference_s_with_what_it_needs():
    source = """
import torch
import torch.nn as nn
import math

class Scale(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size) * math.pi)

class Model(nn.Module):
    def __init__(self, size, eps=1e-5):
        super(Model, self).__init__()
        self.scale = Scale(size)
        self.eps = eps
    def forward(self, x):
        return x * self.scale.weight
"""
    built = constructor(problem(source))
    assert "self.scale = Scale(size)" in built.init
    assert "class Scale" in built.definitions
    assert set(built.imports) == {"import math", "import torch.nn as nn"}


def test_a_constructor_that_reads_a_size_of_the_file_is_declined():
    source = (
        RELU.replace(
            "    def forward",
            "    def __init__(self):\n        super().__init__()\n"
            "        self.w = nn.Parameter(torch.ones(width))\n    def forward",
        )
        + "\nwidth = 8\n"
    )
    with pytest.raises(Declined, match="width"):
        constructor(problem(source))


def test_shared_work_is_written_once_and_operators_keep_their_order():
    x, y = Leaf("x", ValueType.F32), Leaf("y", ValueType.F32)
    difference = apply("-", x, apply("-", y, number(1, ValueType.F32)))
    lines, values = body({"a": apply("*", difference, difference), "b": apply("neg", apply("+", x, y))})
    assert lines == ["t0 = x - (y - 1.0)"]
    assert values == {"a": "t0 * t0", "b": "-(x + y)"}


def test_a_flag_becomes_a_number_and_a_number_a_flag():
    flag = cast(Leaf("n", ValueType.I32), ValueType.BOOL)
    assert isinstance(flag, Apply)
    assert body({"a": flag})[1] == {"a": "(n != 0)"}
    assert body({"a": cast(flag, ValueType.F32)})[1] == {"a": "(n != 0).to(cutlass.Float32)"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x", "x"),
        ("f(a, b)", "f(a, b)"),
        ("f(a) + g(b)", "(f(a) + g(b))"),
        ("(a + b)", "(a + b)"),
        ("-x", "(-x)"),
    ],
)
def test_brackets_are_added_where_an_operator_would_bind_wrongly(text, expected):
    assert grouped(text) == expected


def test_a_view_gives_axes_to_dimensions_and_asks_for_a_split_inside_one():
    batch, channels, width = (Axis(Extent(n, n)) for n in (4, 6, 5))
    assert regroup((batch, channels, width), (Extent(24, 24), Extent(5, 5))) == ((batch, channels), (width,))
    with pytest.raises(SplitNeededError) as split:
        regroup((batch, channels, width), (Extent(8, 8), Extent(3, 3), Extent(5, 5)))
    assert split.value.axis is channels
    assert split.value.inner == Extent(3, 3)
    with pytest.raises(ValueError):
        regroup((channels, width), (Extent(10, 10), Extent(3, 3)))
