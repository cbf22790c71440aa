"""Launches and samples of a plain kernel, whose counts a test changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.core.estimate import FullSizeSample, LaunchSample
from cutegen_nb.core.profile import Access, Counters, KernelResources, LaunchProfile

BYTES = 1 << 30
"""Bytes that the kernel reads, and writes."""


@pytest.fixture
def launch():
    """Maker of a copy of 1 GiB by whole lines; its arguments change the counters or the launch."""

    def made(*, counters=(), **changed):
        sectors, requests = BYTES // 32, BYTES // 512
        plain = Counters(
            warp_instructions=10 * requests, thread_instructions=320 * requests,
            gmem_load_bytes=BYTES, gmem_store_bytes=BYTES,
            gmem_load_sectors=sectors, gmem_store_sectors=sectors, gmem_requests=2 * requests,
            gmem_accesses={
                "load": Access(requests=requests, bytes=BYTES, passes=sectors, ideal=sectors),
                "store": Access(requests=requests, bytes=BYTES, passes=sectors, ideal=sectors),
            },
        )  # fmt: skip
        profile = LaunchProfile(
            kernel="copy", grid=(BYTES // 4096, 1, 1), block=(256, 1, 1), dynamic_smem_bytes=0,
            counters=replace(plain, **dict(counters)), gmem_distinct_sectors=2 * sectors,
            resources=KernelResources(architecture="sm_90a", registers=32),
        )  # fmt: skip
        sample = LaunchSample(
            profile=profile, ctas=8, first_touch_sectors=sectors, load_rounds=requests,
            longest_warp_instructions=10,
        )  # fmt: skip
        for name, value in changed.items():
            if name in LaunchProfile.__dataclass_fields__:
                sample = replace(sample, profile=replace(sample.profile, **{name: value}))
            else:
                sample = replace(sample, **{name: value})
        return sample

    return made


@pytest.fixture
def call(launch):
    """Maker of a sample of one such launch."""

    def made(**changed):
        return FullSizeSample(launches=(launch(**changed),))

    return made
