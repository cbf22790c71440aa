"""`cutegen-nb profile`: a report of Nsight Compute, a kernel on the simulator, wrong use."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest

from cutegen_nb.cli.main import main

pytestmark = pytest.mark.usefixtures("one_template")
ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "hardware" / "data" / "nsight"
BANKS = ROOT / "tests" / "analysis" / "planted" / "banks.py"


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name in ("small.ncu-rep", "others.ncu-rep"):
        (folder / name).write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
    return folder


def told(capsys, *words):
    status = main(["profile", *map(str, words)])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_a_foreign_report_is_shown_kernel_by_kernel(reports, capsys):
    status, out, _ = told(capsys, reports / "others.ncu-rep")
    assert status == 0
    assert out.startswith("7 launches, Nsight Compute 2025.3.1.0 on NVIDIA H200, CUDA 13.0, 2026-11-21")
    assert out.count("Bound: ") == 7
    assert "nvjet_sm90" in out
    assert "row_sum_kernel" in out
    assert "What a warp's time goes to" in out


@pytest.mark.long
def test_one_kernel_is_chosen_by_name_and_shown_with_its_source(reports, capsys, tmp_path):
    page = tmp_path / "banks.html"
    status, out, _ = told(
        capsys, reports / "small.ncu-rep", "--only", "one_bank", "--source", BANKS, "--html", page, "--lines"
    )
    assert status == 0
    assert out.startswith("1 launch,")
    assert "bank-conflicts" in out
    assert "value = tile[t % SIDE, t // SIDE]" in out
    assert "# planted" in page.read_text()
    assert "/home/" not in page.read_text()


@pytest.mark.long
def test_json_keeps_each_kernel_apart_with_metrics_units_and_diagnosis(reports, capsys):
    status, out, _ = told(capsys, reports / "others.ncu-rep", "--only", "row_sum", "--json")
    (kernel,) = json.loads(out)["kernels"]
    assert status == 0
    assert kernel["metrics"]["dram__bytes_read.sum"]["unit"] == "byte"
    assert kernel["diagnosis"]["bound"] == "memory"
    assert "lines" not in kernel


@pytest.mark.slow
def test_a_kernel_is_profiled_on_the_simulator(capsys, tmp_path):
    page = tmp_path / "relu.html"
    gpu = ROOT / "tests" / "evaluator"
    status, out, err = told(
        capsys,
        gpu / "problems" / "relu.py",
        gpu / "candidates" / "relu.py",
        "--device",
        "simulator",
        "--html",
        page,
    )
    assert status == 0, err
    assert out.startswith("1 launch, simulated counts for sm_80")
    assert "Bound: " in out
    assert "value = x[index]" in out
    assert "line by line" in page.read_text()


@pytest.mark.slow
def test_a_kernel_that_fails_is_an_object_too_where_json_was_asked_for(capsys, tmp_path):
    (tmp_path / "none.py").write_text("x = 1\n")
    problem = ROOT / "tests" / "evaluator" / "problems" / "relu.py"
    status, out, _ = told(capsys, problem, tmp_path / "none.py", "--device", "simulator", "--json")
    assert (status, json.loads(out)["verdict"]) == (1, "SCREENED_OUT")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["missing.ncu-rep"], "cannot be opened"),
        (["relu.py"], "needs PROBLEM.py and KERNEL.py"),
        (["a.ncu-rep", "kernel.py"], "stands alone"),
        pytest.param(
            ["{reports}/small.ncu-rep", "--only", "("], "no regular expression", marks=pytest.mark.long
        ),
        pytest.param(
            ["{reports}/small.ncu-rep", "--only", "nothing_of_this_name"],
            "No kernel of",
            marks=pytest.mark.long,
        ),
        (["{reports}/small.ncu-rep", "--html", "/no/such/folder/x.html"], "does not exist"),
    ],
)
def test_wrong_use_is_one_sentence_with_the_next_step(reports, capsys, words, expected):
    status, out, err = told(capsys, *(word.format(reports=reports) for word in words))
    assert status == 2
    assert not out
    assert expected in err
    assert "Traceback" not in err
