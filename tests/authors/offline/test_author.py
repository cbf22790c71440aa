"""The offline author as the loop sees it: menus, replies, and what a generated file is made of."""

import ast
import asyncio
import re
from dataclasses import replace
from functools import cache

import pytest

from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.authors.offline.lineage import lineage
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.round import Attempt, Prompt, Reply, Round, StrategyEnd, Usage
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Optimisation, Strategy, StrategySource
from cutegen_nb.evaluator.problem.trace import trace_facts
from cutegen_nb.prompting.parse import StrategyOver, parse_reply
from cutegen_nb.prompting.strategy_reply import StatedAlignment, parse_alignment, parse_strategy

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
CONV = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return torch.relu(self.conv(x))

def get_inputs():
    return [torch.rand(2, 4, 16, 16)]

def get_init_inputs():
    return [4, 8]
"""
DEVICE = Device(
    kind=DeviceKind.SIMULATOR,
    name="simulated",
    architecture="sm_80",
    bandwidth_bytes_per_s=1.0,
    peak_flops={},
    source="test",
)


def problem(source, library=()):
    return Problem(name="given", source=source, form=ProblemForm.KERNELBENCH, library=library)


@cache
def facts_of(source):
    return trace_facts(problem(source))


def session(source, *rounds, library=()):
    return Session(
        name="s",
        problem=problem(source, library),
        facts=facts_of(source),
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


def asked(strategy=None, parent=None, words="", purpose="optimise", **more):
    return Prompt(
        system="",
        user="",
        digest="",
        strategy=strategy,
        parent=parent,
        steering=words,
        purpose=purpose,
        **more,
    )


def answered(author, given, prompt):
    reply = asyncio.run(author.write(prompt, given, lambda _: None))
    return reply.text, reply.text.partition("```python\n")[2].rpartition("```")[0]


def written(author, given, strategy=None, parent=None, words=""):
    return answered(author, given, asked(strategy, parent, words))


def grown(author, source, *steps, **options):
    """Session whose rounds carry out `steps` one on another: a strategy or None, or with words ``(strategy, words)``."""
    rounds, parent = [], None
    for step in steps:
        strategy, words = step if isinstance(step, tuple) else (step, "")
        prompt = asked(strategy, parent, words)
        _, text = answered(author, session(source, *rounds, **options), prompt)
        parents = (parent.digest,) if parent else ()
        parent = Candidate(source=text, author=author.name, parents=parents, strategy=strategy)
        rounds.append(finished(len(rounds), parent, prompt))
    return session(source, *rounds, **options)


def menu_by_name(author, given):
    return {item.name: item for item in author.menu(given.facts, given.problem.library)}


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


def test_a_size_that_forward_cannot_compute_is_declined_in_the_person_s_terms():
    sums = RELU.replace("torch.relu(x)", "x.unfold(-1, 16, 5).sum(-1)")
    head, inputs, _ = sums.partition("def get_inputs")
    given = session(f"{head}{inputs}():\n    return [torch.randn(64, 4099)]\n")
    with pytest.raises(Declined, match="cannot compute the size 817 from the inputs' sizes"):
        written(OfflineAuthor(), given)


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
        ("torch.softmax(x.half(), 0)", "one-pass split-reduction vectorise-128 vectors-in-flight"),
        ("nn.functional.layer_norm(x.half(), x.shape)", "vectorise-128 one-pass vectors-in-flight"),
        ("x.sum(1)", "cta-per-row vectorise-128 vectors-in-flight"),
        ("x.mean()", "vectorise-128 vectors-in-flight"),
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


@pytest.fixture(scope="module")
def relu():
    """Author, session after a first kernel and the coalesced one, and the menu."""
    author = OfflineAuthor()
    menu = menu_by_name(author, session(RELU))
    return author, grown(author, RELU, None, menu["coalesced"]), menu


def test_a_persons_words_are_carried_out_and_answered_in_the_rationale(relu):
    author, given, menu = relu
    parent = given.rounds[-1].candidate
    text, source = written(author, given, menu["vectorise-128"], parent, "64 threads and a tile of 8, please")
    assert (
        "As asked: 64 threads a CTA. Not followed: a tile of 8 × 8: this kernel has no tile to choose."
        in text
    )
    assert "\nTHREADS = 64 " in source
    named, _ = written(author, given, menu["vectorise-128"], parent, "do vectorise 128 now")
    assert "As asked: the strategy vectorise-128." in named
    lost, unchanged = written(author, given, menu["vectorise-128"], parent, "make it sing")
    assert "The offline author cannot follow “make it sing”" in lost
    assert unchanged == written(author, given, menu["vectorise-128"], parent)[1]


def test_settings_asked_for_in_an_earlier_round_stay(relu):
    author, _, menu = relu
    given = grown(author, RELU, None, (menu["coalesced"], "64 threads"), menu["vectorise-128"])
    sources = [item.candidate.source for item in given.rounds]
    assert ["\nTHREADS = 64 " in source for source in sources] == [False, True, True]
    text, source = written(
        author, given, menu["vectors-in-flight"], given.rounds[-1].candidate, "unroll by 2"
    )
    assert "\nTHREADS = 64 " in source
    assert "\nIN_FLIGHT = 2 " in source
    assert "As asked: unrolling by 2." in text


def test_a_strategy_that_changes_no_code_is_ended_with_a_reason(relu):
    author, given, menu = relu
    text, source = written(author, given, menu["coalesced"], given.rounds[-1].candidate)
    assert source == ""
    over = parse_reply(Reply(text=text, usage=Usage()), given.rounds[-1].candidate.source, may_end=True)
    assert isinstance(over, StrategyOver)
    assert over.end is StrategyEnd.CANNOT_APPLY
    assert over.reason == "the templates write the same code with and without it; coalesced applied already."


def test_a_library_policy_leaves_its_part_to_pytorch_and_words_are_followed_all_the_same():
    author, library = OfflineAuthor(), (LibraryFamily.CONV,)
    assert "implicit-gemm-tiles" in [item.name for item in author.menu(facts_of(CONV))]
    assert "implicit-gemm-tiles" not in [item.name for item in author.menu(facts_of(CONV), library)]
    given = session(CONV, library=library)
    text, source = written(author, given, words="64 threads")
    assert "As asked: 64 threads a CTA." in text
    assert "torch.convolution(x, " in source
    assert "torch.relu" not in source
    assert source.startswith('"""given in CuTe DSL with PyTorch\'s conv')
    menu = menu_by_name(author, given)
    grown(
        author, CONV, None, (menu["vectorise-128"], "128 threads"), menu["vectors-in-flight"], library=library
    )


def test_a_policy_that_leaves_nothing_to_a_kernel_is_declined():
    bare = CONV.replace("torch.relu(self.conv(x))", "self.conv(x)")
    with pytest.raises(
        Declined, match="--library conv leaves no part of this problem to a kernel: take the option away"
    ):
        OfflineAuthor().menu(facts_of(bare), (LibraryFamily.CONV,))


def by_person(given, old, new):
    """Session whose last kernel a person has edited, and the edited kernel."""
    before = given.rounds[-1].candidate
    assert old in before.source
    edited = Candidate(
        source=before.source.replace(old, new, 1),
        author="person:ada",
        parents=(before.digest,),
        strategy=before.strategy,
    )
    return session(given.problem.source, *given.rounds, finished(len(given.rounds), edited, asked())), edited


def test_a_persons_edit_is_kept_in_the_next_kernel(relu):
    author, given, menu = relu
    given, edited = by_person(given, "class ModelNew", "# mind the tail\nclass ModelNew")
    text, source = written(author, given, menu["vectorise-128"], edited)
    assert "The person's edits are kept." in text
    assert "# mind the tail\nclass ModelNew" in source
    assert "autovec_copy" in source
    assert source.splitlines()[0].endswith(': coalesced, vectorise-128."""')


def test_todays_words_may_change_the_line_of_an_earlier_edit(relu):
    author, given, menu = relu
    given, edited = by_person(given, "THREADS = 256", "THREADS = 512")
    text, source = written(author, given, menu["vectorise-128"], edited, "128 threads")
    assert "The person's edits are kept. As asked: 128 threads a CTA." in text
    assert "\nTHREADS = 128" in source


def test_a_strategy_that_changes_what_a_person_edited_is_ended_with_the_place(relu):
    author, given, menu = relu
    parent = given.rounds[-1].candidate
    kept = written(author, given, menu["vectorise-128"], parent)[1].splitlines()
    place, line = next(
        (place, line)
        for place, line in enumerate(parent.source.splitlines(), 1)
        if line not in kept and line.startswith("    ") and parent.source.count(line) == 1
    )
    given, edited = by_person(given, line, f"{line}  # mine")
    text, source = written(author, given, menu["vectorise-128"], edited)
    assert source == ""
    over = parse_reply(Reply(text=text, usage=Usage()), edited.source, may_end=True)
    assert over.end is StrategyEnd.CANNOT_APPLY
    numbers = [int(found) for found in re.findall(r"\d+", over.reason)]
    assert numbers[0] <= place <= numbers[-1], over.reason
    assert over.reason.endswith("and a person's edit there cannot both be made.")


@pytest.mark.parametrize("authors", [("m",), ("m", "offline")])
def test_kernels_in_which_another_author_had_a_part_are_declined(authors):
    candidates = []
    for place, name in enumerate(authors):
        parents = tuple(item.digest for item in candidates[-1:])
        candidates.append(Candidate(source=f"# {place}", author=name, parents=parents))
    rounds = [finished(place, item, asked()) for place, item in enumerate(candidates)]
    with pytest.raises(Declined, match="this is by m"):
        written(OfflineAuthor(), session(RELU, *rounds), parent=candidates[-1])


SOFTMAX = RELU.replace("torch.relu(x)", "torch.softmax(x, 1)")


@pytest.fixture(scope="module")
def crossing():
    """Author, and a session with two kernels of different strategies on one first kernel: r1 and r2."""
    author = OfflineAuthor()
    menu = menu_by_name(author, session(SOFTMAX))
    given = grown(author, SOFTMAX, None, menu["cta-per-row"])
    first = given.rounds[0].candidate
    other = Candidate(
        source=written(author, given, menu["one-pass"], first)[1],
        author="offline",
        parents=(first.digest,),
        strategy=menu["one-pass"],
    )
    return author, session(SOFTMAX, *given.rounds, finished(2, other, asked(menu["one-pass"], first)))


def test_two_of_its_kernels_are_crossed_in_words_and_the_child_is_written(crossing):
    author, given = crossing
    text, _ = answered(author, given, asked(purpose="cross", crossed=("r1", "r2")))
    stated = parse_strategy(Reply(text=text, usage=Usage()))
    assert stated.name == "cta-per-row-with-one-pass"
    assert stated.combines == ("cta-per-row", "one-pass")
    assert stated.statement.startswith("Keep cta-per-row of r1, and take from r2: Read each row once")
    assert [item.counter for item in stated.effects] == ["gmem_load_sectors"]
    child = Strategy(
        name=stated.name,
        statement=stated.statement,
        source=StrategySource.CROSSOVER.value,
        parents=("cta-per-row", "one-pass"),
    )
    reply, source = written(author, given, child, given.rounds[1].candidate)
    assert reply.startswith(stated.statement)
    assert source.splitlines()[0].endswith(': cta-per-row, one-pass."""')
    after = Candidate(
        source=source, author="offline", parents=(given.rounds[1].candidate.digest,), strategy=child
    )
    assert lineage(after, session(SOFTMAX, *given.rounds, finished(3, after, asked()))) == (
        "cta-per-row", "one-pass",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("crossed", "reason"),
    [
        (("r1", "r0"), "r0 carries out no strategy that r1 lacks"),
        (("r1", "r9"), "the session has no kernel of r9"),
        ((), "names no two revisions"),
    ],
)
def test_a_cross_without_anything_to_take_is_declined(crossing, crossed, reason):
    author, given = crossing
    with pytest.raises(Declined, match=reason):
        answered(author, given, asked(purpose="cross", crossed=crossed))


def test_a_cross_with_another_authors_kernel_is_declined(crossing):
    author, given = crossing
    foreign = replace(given.rounds[2].candidate, author="openai:m")
    given = session(SOFTMAX, *given.rounds[:2], finished(2, foreign, asked()))
    with pytest.raises(Declined, match="crosses strategies of its own kernels only; one is by openai:m"):
        answered(author, given, asked(purpose="cross", crossed=("r1", "r2")))


def test_it_restates_a_strategy_as_done_and_invents_none(crossing):
    author, given = crossing
    strategy = replace(
        menu_by_name(author, given)["vectorise-128"], absent=(Optimisation.VECTORS, Optimisation.COALESCED)
    )
    text, _ = answered(author, given, asked(strategy, purpose="align"))
    assert parse_alignment(Reply(text=text, usage=Usage())) == StatedAlignment(
        statement=strategy.statement, carries=(Optimisation.VECTORS, Optimisation.COALESCED)
    )
    for purpose, reason in (("align", "names no strategy to restate"), ("invent", "invents no strategy")):
        with pytest.raises(Declined, match=reason):
            answered(author, given, asked(purpose=purpose))
