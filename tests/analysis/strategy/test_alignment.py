"""A strategy as the kernel carries it out: the author's words, corrected where the kernel denies them."""

from __future__ import annotations

from cutegen_nb.analysis.strategy.alignment import FEATURES, align, optimisations_in_force
from cutegen_nb.analysis.strategy.kernel_traits import KernelTraits
from cutegen_nb.core.strategy import Optimisation, Strategy

WIDE = KernelTraits(wide_fraction=1.0, coalesced_fraction=1.0)
NARROW = KernelTraits(wide_fraction=0.0, coalesced_fraction=1.0)
VECTORISE = Strategy(name="vectorise", statement="Do it.", absent=(Optimisation.VECTORS,))
VECTORS, COALESCED, PIPELINED = Optimisation.VECTORS, Optimisation.COALESCED, Optimisation.PIPELINED


def aligned(parent, kernel, *, statement="It loads 128 bits a thread.", carries=(VECTORS,)):
    return align(VECTORISE, parent, kernel, statement=statement, carries=carries, by="model")


def test_what_the_kernel_shows_stands_as_the_author_said_it():
    found = aligned(NARROW, WIDE)
    assert found.statement == "It loads 128 bits a thread."
    assert (found.by, found.brought, found.lost, found.unfulfilled) == ("model", (VECTORS,), (), ())
    assert found.in_force == (COALESCED, VECTORS)


def test_a_claim_that_the_kernel_denies_is_corrected_beside_it():
    found = aligned(NARROW, NARROW)
    assert found.statement == (
        "It loads 128 bits a thread. Correction from the kernel's features: it does not carry out "
        "vectors-128 (0.0 % of the bytes move by whole vectors)."
    )
    assert found.unfulfilled == ("vectors-128 is claimed, but 0.0 % of the bytes move by whole vectors",)
    assert VECTORS not in found.in_force


def test_what_the_strategy_promised_and_nobody_claims_is_missed_too():
    found = aligned(NARROW, NARROW, carries=())
    assert found.unfulfilled == ("vectors-128 is promised, but 0.0 % of the bytes move by whole vectors",)


def test_a_claim_of_which_nothing_tells_is_neither_brought_nor_missed():
    found = aligned(NARROW, WIDE, carries=(VECTORS, PIPELINED))
    assert found.not_told == (PIPELINED,)
    assert found.unfulfilled == ()
    assert PIPELINED not in found.brought


def test_what_the_parent_did_and_the_kernel_does_not_is_lost():
    found = aligned(WIDE, NARROW, statement="", carries=())
    assert found.lost == (VECTORS,)
    assert found.by == FEATURES
    assert found.statement.startswith("It no longer carries out vectors-128 (0.0 % of the bytes")


def test_a_first_kernel_brings_all_that_it_carries_out():
    assert aligned(None, WIDE).brought == (COALESCED, VECTORS)


def test_a_statement_is_derived_where_the_author_gave_none():
    plain = Strategy(name="plain", statement="Do it.")

    def derived(parent, kernel):
        return align(plain, parent, kernel, statement=" \n ", carries=(), by="model").statement

    assert derived(NARROW, WIDE).startswith("The kernel now carries out vectors-128 (100.0 %")
    assert derived(WIDE, WIDE).startswith("The kernel carries out the same optimisations as its parent: ")
    nothing = KernelTraits()
    assert derived(nothing, nothing) == "Counts, machine code and source show no optimisation."


def test_optimisations_are_listed_in_their_own_order():
    assert optimisations_in_force(WIDE) == (COALESCED, VECTORS)
    assert optimisations_in_force(KernelTraits()) == ()
