"""Occupancy: the limit that holds, by cause, and what would lift it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cutegen_nb.analysis.hardware.occupancy import launch_occupancy, limits_of, occupancy
from cutegen_nb.core.profile import Counters, KernelResources, LaunchProfile

ARCHITECTURES = ["sm_80", "sm_86", "sm_89", "sm_90a"]


@pytest.mark.parametrize(
    ("architecture", "warps", "ctas", "most_smem"),
    [
        ("sm_80", 64, 32, 163 * 1024),
        ("sm_86", 48, 16, 99 * 1024),
        ("sm_89", 48, 24, 99 * 1024),
        ("sm_90", 64, 32, 227 * 1024),
        ("sm_90a", 64, 32, 227 * 1024),
    ],
)
def test_limits_are_those_of_the_programming_guide(architecture, warps, ctas, most_smem):
    limits = limits_of(architecture)

    assert (limits.warps, limits.ctas, limits.smem_per_cta_bytes) == (warps, ctas, most_smem)


@pytest.mark.parametrize(
    ("case", "ctas", "limiter"),
    [
        ({"threads": 256, "registers": 32, "smem_bytes": 0}, 8, "threads"),
        ({"threads": 256, "registers": 33, "smem_bytes": 0}, 6, "registers"),  # 40 a thread are given out
        ({"threads": 256, "registers": 255, "smem_bytes": 0}, 1, "registers"),
        ({"threads": 128, "registers": 128, "smem_bytes": 0}, 4, "registers"),
        ({"threads": 128, "registers": 32, "smem_bytes": 48 * 1024}, 3, "shared memory"),
        ({"threads": 32, "registers": 16, "smem_bytes": 0}, 32, "CTA slots"),
        ({"threads": 1024, "registers": 32, "smem_bytes": 0}, 2, "threads"),
        ({"threads": 768, "registers": 32, "smem_bytes": 0}, 2, "threads"),
    ],
)
def test_the_tightest_resource_limits_on_sm_80(case, ctas, limiter):
    found = occupancy("sm_80", **case)

    assert (found.active_ctas, found.limiters[0]) == (ctas, limiter)
    assert found.active_warps == ctas * -(-case["threads"] // 32)
    assert found.fraction == found.active_warps / 64


def test_the_same_kernel_fits_less_often_where_an_sm_holds_less():
    case = {"threads": 128, "registers": 40, "smem_bytes": 20 * 1024}

    assert [occupancy(name, **case).active_ctas for name in ARCHITECTURES] == [7, 4, 4, 10]


@pytest.mark.parametrize(
    ("case", "cause"),
    [
        ({"threads": 1024, "registers": 72, "smem_bytes": 0}, "registers"),
        ({"threads": 128, "registers": 32, "smem_bytes": 164 * 1024}, "shared memory"),
    ],
)
def test_a_cta_that_does_not_fit_at_all_has_no_occupancy_and_a_cause(case, cause):
    found = occupancy("sm_80", **case)

    assert (found.active_ctas, found.fraction, found.limiters) == (0, 0.0, (cause,))


def test_what_would_lift_the_limit_is_said_in_figures():
    by_registers = occupancy("sm_80", threads=256, registers=40, smem_bytes=0)
    by_smem = occupancy("sm_80", threads=128, registers=32, smem_bytes=48 * 1024)
    by_slots = occupancy("sm_80", threads=32, registers=16, smem_bytes=0)
    by_size = occupancy("sm_80", threads=768, registers=32, smem_bytes=0)

    assert by_registers.lift == "at most 32 registers a thread"
    assert by_smem.lift == "at most 40,960 bytes of shared memory a CTA"
    assert by_slots.lift == "larger CTAs"
    assert by_size.lift.startswith("CTAs of fewer warps")
    assert not occupancy("sm_80", threads=256, registers=32, smem_bytes=0).lift


@given(
    architecture=st.sampled_from(ARCHITECTURES),
    threads=st.integers(1, 1024),
    registers=st.integers(1, 255),
    smem_bytes=st.integers(0, 100 * 1024),
)
def test_following_the_advice_lets_another_cta_in(architecture, threads, registers, smem_bytes):
    before = occupancy(architecture, threads=threads, registers=registers, smem_bytes=smem_bytes)
    for advice in before.lift.split("; "):
        number = int("".join(filter(str.isdigit, advice)) or 0)
        if "registers" in advice:
            registers = number
        elif "shared" in advice:
            smem_bytes = number
        else:
            return
    after = occupancy(architecture, threads=threads, registers=registers, smem_bytes=smem_bytes)

    assert not before.lift or after.active_ctas > before.active_ctas


@given(
    architecture=st.sampled_from(ARCHITECTURES),
    threads=st.integers(1, 1024),
    registers=st.integers(0, 255),
    smem_bytes=st.integers(0, 230 * 1024),
)
def test_what_is_active_fits(architecture, threads, registers, smem_bytes):
    found = occupancy(architecture, threads=threads, registers=registers, smem_bytes=smem_bytes)
    limits, warps = limits_of(architecture), -(-threads // 32)

    assert found.active_ctas == min(one.ctas for one in found.limits)
    assert found.active_warps <= limits.warps
    assert found.active_warps * registers * 32 <= 65536
    assert found.active_ctas * (smem_bytes + 1024) <= limits.smem_bytes
    assert [one.ctas for one in found.limits] == sorted(one.ctas for one in found.limits)
    assert found.active_warps == found.active_ctas * warps


def test_an_architecture_without_a_table_is_refused_by_name():
    with pytest.raises(ValueError, match="sm_75"):
        occupancy("sm_75", threads=32, registers=32, smem_bytes=0)


@pytest.mark.parametrize("resources", [None, KernelResources(architecture="sm_75", registers=32)])
def test_a_launch_of_which_too_little_is_known_has_none(resources):
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(32, 1, 1), dynamic_smem_bytes=0, counters=Counters(),
        resources=resources,
    )  # fmt: skip

    assert launch_occupancy(launch) is None


def test_a_launch_counts_static_and_dynamic_shared_memory():
    launch = LaunchProfile(
        kernel="k", grid=(1, 1, 1), block=(64, 2, 1), dynamic_smem_bytes=32 * 1024, counters=Counters(),
        resources=KernelResources(architecture="sm_80", registers=32, static_smem_bytes=16 * 1024),
    )  # fmt: skip

    assert launch_occupancy(launch) == occupancy("sm_80", threads=128, registers=32, smem_bytes=48 * 1024)
