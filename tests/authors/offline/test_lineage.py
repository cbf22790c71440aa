"""Steps that led to a candidate, oldest first."""

from dataclasses import replace

from cutegen_nb.authors.offline.lineage import ancestors, lineage, steps_of
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.testing.examples import session_of


def step(name, **more):
    return Strategy(name=name, statement=name, **more)


def chain(*steps, author="offline"):
    """Session whose rounds each build on the one before."""
    session, rounds, parent = session_of(*[Relation.FASTER] * len(steps)), [], None
    for item, strategy in zip(session.rounds, steps, strict=True):
        parents = (parent.digest,) if parent else ()
        parent = Candidate(source=f"# {item.number}", author=author, parents=parents, strategy=strategy)
        rounds.append(replace(item, attempts=(replace(item.attempts[0], candidate=parent),)))
    return replace(session, rounds=tuple(rounds)), parent


def test_the_steps_are_those_of_the_ancestors_in_order():
    session, last = chain(None, step("tiles"), step("vectors"))
    assert lineage(last, session) == ("tiles", "vectors")
    assert [item.source for item in ancestors(last, session)] == ["# 0", "# 1", "# 2"]
    assert lineage(None, session) == ()


def test_a_combination_counts_as_its_parts_each_once():
    combined = step("both", source="crossover", parents=("tiles", "split"))
    session, last = chain(None, step("tiles"), combined)
    assert lineage(last, session) == ("tiles", "split")
    assert steps_of(combined, session) == ("tiles", "split")


def test_a_persons_edit_is_no_step():
    session, last = chain(None, step("tiles"), author="person:ada")
    assert lineage(last, session) == ()


def test_a_combination_of_itself_ends():
    loop = step("loop", source="crossover", parents=("loop",))
    session, _ = chain(loop)
    assert steps_of(replace(loop, parents=(loop.identity,)), session) in {(loop.identity,), ("loop",), ()}
