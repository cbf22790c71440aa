"""`cutegen-nb campaign`: many problems, resumed, with settings held fast, as text, JSON and page."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from cutegen_nb.cli import main

pytestmark = pytest.mark.usefixtures("one_template")
RELU = """import torch


def relu(x):
    return torch.relu(x)


def get_inputs():
    return [torch.randn(4096)]
"""
INVERSE = (
    RELU.replace("relu", "inverse").replace("torch.inverse(x)", "torch.linalg.inv(x)").replace("4096", "8, 8")
)


@dataclass
class Done:
    """Result of a command."""

    status: int
    out: str
    err: str


def campaign(folder: Path, *words: str) -> Done:
    """Run the command in this process, in a folder; a kernel runs in a process of its own."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["campaign", *words])
    return Done(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("campaign")
    (made / "level").mkdir()
    for name, text in (("1_relu", RELU), ("2_inverse", INVERSE), ("3_broken", "def get_inputs(:\n")):
        (made / "level" / f"{name}.py").write_text(text)
    return made


GIVEN = ("level", "--device", "simulator", "--rounds", "1")


@pytest.fixture(scope="module")
def first(folder):
    """The campaign's first run: one problem is solved, one declined, one cannot be used."""
    return campaign(folder, *GIVEN, "--json")


@pytest.mark.slow
class TestOneCampaign:
    """In order, on one folder."""

    def test_each_problem_ends_with_its_state_and_reason(self, first):
        found = json.loads(first.out)
        states = {item["file"]: item["state"] for item in found["problems"]}

        assert first.status == 0
        assert states == {
            "level/1_relu.py": "budget spent",
            "level/2_inverse.py": "declined",
            "level/3_broken.py": "unusable",
        }
        by_file = {item["file"]: item for item in found["problems"]}
        assert by_file["level/1_relu.py"]["correct"] is True
        assert by_file["level/1_relu.py"]["estimate"]["seconds"] > 0
        assert by_file["level/1_relu.py"]["latency_ms"] is None
        assert "does not parse" in by_file["level/3_broken.py"]["reason"]
        assert by_file["level/2_inverse.py"]["reason"]

    def test_failures_count_in_the_statistics(self, first):
        totals = json.loads(first.out)["totals"]

        assert (totals["problems"], totals["run"], totals["correct"]) == (3, 3, 1)
        assert totals["correct_share"] == pytest.approx(1 / 3)
        low, high = totals["correct_interval"]
        assert low < 1 / 3 < high
        assert totals["baselines"] == []

    def test_progress_names_each_problem_with_its_place(self, first):
        assert "1_relu (1 of 3)" in first.err
        assert "2_inverse (2 of 3)" in first.err
        assert "3_broken: unusable: " in first.err

    def test_the_page_and_a_report_of_each_session_are_written(self, folder, first):
        store = folder / ".cutegen" / "campaigns" / "level"
        page = (store / "campaign.html").read_text()

        assert json.loads(first.out)["report"] == ".cutegen/campaigns/level/campaign.html"
        assert 'href="relu.html"' in page
        assert (store / "relu.html").is_file()
        assert (store / "campaign.json").is_file()

    def test_the_same_command_runs_nothing_again(self, folder, first):
        again = campaign(folder, *GIVEN, "--json")
        before, after = json.loads(first.out), json.loads(again.out)

        assert "r0" not in again.err
        assert after["problems"] == before["problems"]

    def test_other_limits_are_told_and_other_settings_refused(self, folder, first):
        refused = campaign(folder, *GIVEN, "--schedule", "paper")
        assert refused.status == 2
        assert "--schedule plateau, now paper: results of both would not be comparable" in refused.err

        told = campaign(folder, *GIVEN, "--tokens", "5000", "--only", "2,3")
        assert "level goes on with other limits: --tokens 5000 (before: none)" in told.err
        assert "3 broken" not in told.out
        assert told.status == 1, "neither of the two has a correct kernel"

    def test_the_table_gives_no_ratio_without_a_time(self, folder, first):
        text = campaign(folder, *GIVEN).out

        assert "PASSED" in text
        assert "× the speed" not in text
        assert "report: .cutegen/campaigns/level/campaign.html" in text
