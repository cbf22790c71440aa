"""Damaged reports of Nsight Compute are refused."""

from __future__ import annotations

import contextlib
import lzma
from pathlib import Path

import pytest

from cutegen_nb.evaluator.tools.ncu_rep_file import read_report
from cutegen_nb.evaluator.tools.ncu_report import UnreadableReport

HERE = Path(__file__).parents[1]
DATA = HERE.parent / "hardware" / "data" / "nsight"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "small.ncu-rep"
    path.write_bytes(lzma.decompress((DATA / "small.ncu-rep.xz").read_bytes()))
    return path


def test_cut_and_damaged_reports_are_refused_and_nothing_worse(report, tmp_path):
    data = report.read_bytes()[:200_000]
    damaged = tmp_path / "damaged.ncu-rep"
    step = len(data) // 25
    for at in range(5, len(data), step):
        for text in (data[:at], data[:at] + bytes([data[at] ^ 0x5A]) + data[at + 1 :]):
            damaged.write_bytes(text)
            with contextlib.suppress(UnreadableReport):
                read_report(damaged)
    damaged.write_bytes(data)
    with pytest.raises(UnreadableReport, match=r"damaged\.ncu-rep cannot be read"):
        read_report(damaged)
