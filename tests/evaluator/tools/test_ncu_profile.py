"""A profile from a report of Nsight Compute."""

from __future__ import annotations

import json
import lzma
import math
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.core.codec import encode
from cutegen_nb.core.nsight import metrics as names
from cutegen_nb.core.profile import Metric
from cutegen_nb.evaluator.tools.ncu_profile import SHARED_UNITS, profile_of
from cutegen_nb.evaluator.tools.ncu_rep_file import read_report

HERE = Path(__file__).parents[1]
DATA = HERE.parent / "hardware" / "data" / "nsight"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "small.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / "small.ncu-rep.xz").read_bytes()))
    return path


def test_units_that_a_split_gpu_shares_are_left_out_and_said_so(report):
    """CUPTI's documentation: metrics of shared units of a MIG instance come as NaN."""
    recorded = read_report(report)
    first = recorded.kernels[0]
    shared = {names.DRAM_SHARE: Metric(value=math.nan), names.L2_SHARE: Metric(value=math.nan)}
    split = replace(recorded, kernels=(replace(first, metrics=first.metrics | shared),))
    found = profile_of(split)
    assert SHARED_UNITS in found.made_by
    assert names.DRAM_SHARE not in found.launches[0].metrics
    assert SHARED_UNITS not in profile_of(recorded).made_by
    json.dumps(encode(found), allow_nan=False)
