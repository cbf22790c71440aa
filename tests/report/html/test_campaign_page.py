"""Page and terminal table of a campaign."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.analysis.campaign.problem_result import ProblemResult
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.search.campaign import CampaignRecord, ProblemState
from cutegen_nb.core.timing import BaselineTiming
from cutegen_nb.report.html.campaign_page import CampaignPage, render, write_campaign_page
from cutegen_nb.testing import examples

GPU = replace(examples.simulated_device(), kind=DeviceKind.GPU, name="NVIDIA H200")


def over(name: str, speedup: float) -> BaselineTiming:
    return BaselineTiming(
        name=name, median_ms=speedup, speedup=speedup, speedup_low=speedup * 0.99, speedup_high=speedup * 1.01
    )


def solved(name: str, speedup: float) -> ProblemResult:
    return ProblemResult(
        name=name,
        file=f"level1/{name}.py",
        state=ProblemState.FINISHED,
        session=name,
        workload_class="softmax",
        verdict="PASSED",
        correct=True,
        rounds=3,
        revision="r2",
        latency_ms=1.0,
        baselines=(over("eager", speedup), over("torch.compile", speedup / 2)),
        sol_fraction=0.5,
        tokens=1000,
        seconds=60.0,
    )


FAILED = ProblemResult(
    name="sort",
    file="level1/sort.py",
    state=ProblemState.DECLINED,
    reason="The author declined: a sort is not among the graphs it can write.",
)
RESULTS = (solved("relu", 2.0), solved("gelu", 0.5), FAILED)
RECORD = CampaignRecord(
    name="level1",
    created_at="2026-11-20T00:00:00+00:00",
    settings={"--author": "offline", "--device": "NVIDIA H200", "--library": "none"},
    budgets={"--rounds": "6", "--tokens": "none"},
    environment={"torch": "2.13.0"},
)


def page_of(tmp_path: Path, **changed) -> CampaignPage:
    whole = {"record": RECORD, "results": RESULTS, "device": GPU, "folder": tmp_path}
    return CampaignPage(**(whole | changed))


@pytest.fixture
def simulated() -> tuple[ProblemResult, ...]:
    """The same problems without a GPU: estimates instead of times."""
    estimate = Estimate(
        target="NVIDIA H200", seconds=1e-5, seconds_low=8e-6, seconds_high=1.2e-5, bound="DRAM"
    )
    return tuple(
        replace(item, latency_ms=None, baselines=(), sol_fraction=None, estimate=estimate)
        if item.correct
        else item
        for item in RESULTS
    )


def test_the_page_tells_results_over_all_and_by_problem(tmp_path, read):
    text = read(render(page_of(tmp_path, chosen="3 of 100 files"), tmp_path)).shown

    for words in (
        "2 of 3 problems have a correct kernel",
        "the speed of eager",
        "3 of 100 files",
        "--rounds 6",
        "torch 2.13.0",
        "The author declined: a sort is not among the graphs it can write.",
        "Measured",
    ):
        assert words in text, words
    head = text.partition("Campaign report")[2].partition("Over all problems")[0]
    assert "--tokens" not in head, "no limit"
    assert "Left to PyTorch" not in head, "no library policy"


def test_the_geometric_mean_is_of_the_correct_ones_and_failures_are_counted(tmp_path, read):
    text = " ".join(read(render(page_of(tmp_path), tmp_path)).shown.split())

    assert "2 of 3 problems have a correct kernel" in text
    assert "3 of 3 (1 declined)" in text
    assert "2 = 66.7 % (20.8–93.9 %)" in text
    assert "1.00× (0.01–128.59)" in text, "the geometric mean of 2.0 and 0.5"
    assert re.search(r"Fast_1 ?33\.3 % ?0\.0 % ?of all 3; a failure counts as 0", text)


def test_without_a_gpu_there_is_no_ratio_against_a_baseline(tmp_path, read, simulated):
    page = page_of(tmp_path, results=simulated, device=examples.simulated_device(), target="NVIDIA H200")
    text = read(render(page, tmp_path)).shown

    assert "Simulated." in text
    assert "the speed of eager" not in text
    assert "Estimates for" in text


def test_a_row_links_to_its_sessions_own_report_where_there_is_one(tmp_path):
    (tmp_path / "relu.html").write_text("report")
    page = render(page_of(tmp_path), tmp_path)

    assert page.count("<a href=") == 1
    assert '<a href="relu.html">' in page
    assert '<a href="../relu.html">' in render(page_of(tmp_path), tmp_path / "elsewhere")


def test_variants_are_compared_in_pairs(tmp_path, read):
    changed = (solved("relu", 4.0), solved("gelu", 0.5), FAILED)
    page = page_of(tmp_path, variants=(("guide=off", changed),))
    text = read(render(page, tmp_path)).shown

    assert "Ablations" in text
    assert "Problems with guide=off" in text
    assert "Ablations" not in read(render(page_of(tmp_path), tmp_path)).shown


def test_a_campaign_that_stopped_says_why(tmp_path, read):
    page = page_of(tmp_path, ending="The disk is full.")

    assert "Stopped before its end: The disk is full." in read(render(page, tmp_path)).shown


def test_every_text_of_a_campaign_stays_text(tmp_path, payload, poison, harmless):
    page = poison(page_of(tmp_path, variants=(("guide=off", RESULTS),)), payload)

    assert harmless(render(page, tmp_path), payload) > 10


def test_the_page_fetches_nothing(tmp_path, read):
    page = render(page_of(tmp_path), tmp_path)

    assert "http" not in page.replace("http-equiv", "")
    assert not [tag for tag, _ in read(page).tags if tag in {"script", "link", "iframe"}]


def test_the_page_is_written_whole_or_refused_in_a_sentence(tmp_path):
    write_campaign_page(page_of(tmp_path), tmp_path / "campaign.html")
    assert (tmp_path / "campaign.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")

    with pytest.raises(StoreError, match=r"could not be written to /proc/campaign\.html"):
        write_campaign_page(page_of(tmp_path), Path("/proc/campaign.html"))
