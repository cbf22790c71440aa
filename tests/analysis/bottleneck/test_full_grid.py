"""CTAs at the problem's full size, and values that launches pass on, from launches at a smaller size."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.analysis.bottleneck.full_grid import (
    completes_partials,
    ctas_at_full_size,
    is_scaled,
    values_passed_bytes,
)
from cutegen_nb.core.problem import ProblemFacts, WorkloadClass
from cutegen_nb.core.profile import Access, Counters, LaunchProfile, Profile, ProfileSource


def launch(ctas, block=256, loaded=65536, stored=64, **counted):
    counters = Counters(gmem_load_bytes=loaded, gmem_store_bytes=stored, **counted)
    return LaunchProfile(
        kernel="k", grid=(ctas, 1, 1), block=(block, 1, 1), dynamic_smem_bytes=0, counters=counters
    )


def profile(*launches):
    return Profile(source=ProfileSource.SIMULATED, device="", launches=launches)


def facts(scaled, full):
    return ProblemFacts(workload_class=WorkloadClass.OTHER, full=full, scaled=scaled, dtype="float32")


def full_ctas(one, both):
    return ctas_at_full_size(one, profile(one), both)


def test_a_grid_over_rows_grows_with_their_number_and_not_with_their_length(workloads):
    small = workloads.row_sum(16, 1024)
    assert full_ctas(launch(16), facts(small, workloads.row_sum(64, 1024))) == 64
    assert full_ctas(launch(16), facts(small, workloads.row_sum(16, 65536))) == 16
    assert full_ctas(launch(4), facts(small, workloads.row_sum(64, 4096))) == 16


def test_ctas_that_share_rows_grow_with_the_bytes(workloads):
    both = facts(workloads.row_sum(16, 1024), workloads.row_sum(16, 4096))
    assert full_ctas(launch(64), both) == pytest.approx(256, rel=0.01)
    atomics = {"reduction": Access(requests=4, bytes=16, passes=4, ideal=4)}
    assert full_ctas(launch(8, gmem_accesses=atomics), both) == pytest.approx(32, rel=0.01)


def test_a_grid_over_outputs_of_a_product_grows_with_them_and_not_with_their_sums(workloads):
    small = workloads.product(128, 128, 128)
    assert full_ctas(launch(4), facts(small, workloads.product(256, 256, 128))) == 16
    assert full_ctas(launch(4), facts(small, workloads.product(128, 128, 4096))) == 4


def test_a_single_cta_with_much_work_is_taken_as_it_is(workloads):
    both = facts(workloads.relu(1 << 16), workloads.relu(1 << 20))
    assert full_ctas(launch(1, block=32), both) == 1
    assert full_ctas(launch(1, block=1024), both) == 16


def test_at_the_full_size_the_grid_is_the_grid(workloads):
    whole = facts(workloads.relu(1 << 16), workloads.relu(1 << 16))
    assert full_ctas(launch(7), whole) == 7
    both = facts(workloads.relu(1 << 16), workloads.relu(1 << 20))
    measured = replace(profile(launch(7)), source=ProfileSource.NSIGHT)
    assert ctas_at_full_size(launch(7), measured, both) == 7
    assert not is_scaled(measured, both)
    assert is_scaled(profile(launch(7)), both)
    assert not is_scaled(profile(launch(7)), whole)


@pytest.mark.parametrize(
    ("launches", "answer"),
    [
        ((launch(16),), False),
        # A value a CTA, more CTAs than rows: parts of rows, whatever the last launch does with them.
        ((launch(64, stored=256), launch(16, stored=65536)), True),
        # A value a row at most: statistics, which the last launch applies.
        ((launch(16, stored=128), launch(16, stored=65536)), False),
        # A small last launch completes what the others began.
        ((launch(64, stored=256), launch(1, loaded=256, stored=64)), True),
        ((launch(16, gmem_accesses={"atomic": Access(requests=1)}),), True),
        ((launch(16, gmem_accesses={"store": Access(requests=1)}),), False),
        # More values than statistics, on no more CTAs than rows: nothing tells.
        ((launch(16, stored=1024), launch(16, stored=65536)), None),
        # A launch that stores a tensor passes no values on.
        ((launch(64, stored=65536), launch(16, stored=64)), False),
    ],
)
def test_partial_sums_are_told_from_statistics_by_their_number(workloads, launches, answer):
    assert completes_partials(profile(*launches), workloads.row_sum(16, 1024)) is answer


def test_what_launches_of_a_product_pass_on_is_not_told_by_bytes(workloads):
    run = workloads.product(64, 64, 64)
    assert completes_partials(profile(launch(4), launch(4)), run) is None
    assert completes_partials(profile(launch(4)), run) is False


def test_a_reference_that_reduces_its_rows_further_has_a_small_last_launch_without_a_split(workloads):
    run = workloads.row_sum(16, 1024)
    scalar = replace(
        run.graph.nodes[0], outputs=(replace(run.graph.nodes[0].outputs[0], shape=(), strides=()),)
    )
    further = replace(run, graph=replace(run.graph, nodes=(scalar,)))
    two = profile(launch(16, stored=64), launch(1, loaded=64, stored=4))
    assert completes_partials(two, run) is True
    assert completes_partials(two, further) is False


def test_few_values_before_the_last_launch_are_passed_on_and_an_output_is_not(workloads):
    run = workloads.row_sum(16, 1024)
    assert values_passed_bytes(profile(launch(16, stored=256), launch(16)), run) == 256
    assert values_passed_bytes(profile(launch(16, stored=64), launch(16)), run) == 0  # the output's bytes
    assert values_passed_bytes(profile(launch(16, stored=65536), launch(16)), run) == 0
    assert values_passed_bytes(profile(launch(16, stored=256)), run) == 0
