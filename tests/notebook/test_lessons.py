"""The lessons run to their end where nobody answers, and leave no output in the repository."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]
LESSONS = sorted([*(ROOT / "notebooks").glob("0[2-9]_*.ipynb"), *(ROOT / "notebooks").glob("1[01]_*.ipynb")])
RECORDED = ROOT / "notebooks" / "12_recorded_sessions.ipynb"

SHOWN = {
    "02_threads_and_memory": ["memory instructions: it is 64", "first thread outside: it is (3, 232)", "total: 1.0"],
    "03_coalescing_and_vectors": ["sectors by columns: it is 8,192", "sectors with vectors: it is 1,024", "0.125"],
    "04_shared_memory_and_banks": ["the finding: it is race", "wavefronts of a column: it is 32", "RACE: Thread"],
    "05_layouts_and_swizzles": ["first outside: it is (15, 4)", "sectors of narrow: it is 2,048", "sectors of single: it is 4,096", "wavefronts with the swizzle: it is 4"],
    "06_reductions_and_shuffles": ["barriers of the tree: it is 288", "finding in the loop: it is race", "eight chains: mean", "r0: it is 6.98"],
    "07_softmax_and_norms": ["naive: it is (right, right, nan, nan)", "sectors of online: it is 1,536", "variances 1.0557 1.0205 0.8750 0.0000"],
    "08_rooflines_and_limits": ["floor of GELU in ms: it is 2.68", "r1: estimated", "layer norm r1: it is slower", "r3: it is 10.8774"],
    "09_tensor_cores": ["mma instructions: it is 128", "lane of (9, 3): it is 5", "times the least: it is 8.0", "4 passes, 4 at least", "32 passes, 4 at least", "float16: relative error 2e-03"],
    "10_asynchronous_copies": ["share with 4 bytes a thread: it is 0.56", "three stages: it is 27.5", "a group too many: it is async-hazard", "no last barrier: it is race", "instructions of multistage-copies: it is more"],
    "11_hopper_tma_wgmma": ["copy instructions with TMA: it is 6", "half of the bytes: it is deadlock", "wgmma instructions: it is 64", "thread of (37, 5): it is 86", "released early: it is async-hazard", "mma.sync: it is 1.8"],
}  # fmt: skip


def text_of(path: Path) -> str:
    """Everything that a notebook's cells show, as plain text."""
    found = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error", output
            found.append("".join(output.get("text", output.get("data", {}).get("text/plain", ""))))
    return "\n".join(found)


def run_under_nbmake(path: Path, folder: Path) -> Path:
    """Run a copy of a notebook in a folder to its end; the copy has its outputs."""
    copy = Path(shutil.copy(path, folder))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JUPYTER_PLATFORM_DIRS": "1"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "--nbmake",
        "--overwrite",
        "-q",
        "-p",
        "no:cacheprovider",
        str(copy),
    ]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:]
    return copy


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.every(long=3)
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_runs_under_nbmake(path, tmp_path):
    copy = run_under_nbmake(path, tmp_path)
    shown = text_of(copy)
    for words in SHOWN[path.stem]:
        assert words in shown
    assert shown.count("not solved yet") == 3
    assert "no prediction yet" in shown
    assert "application/vnd.jupyter.widget" not in copy.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.long
def test_the_recorded_sessions_are_judged_before_they_are_shown(tmp_path):
    shutil.copytree(ROOT / "notebooks" / "sessions", tmp_path / "sessions")
    shown = text_of(run_under_nbmake(RECORDED, tmp_path))
    for number, word in ((1, "reject"), (2, "approve"), (3, "approve"), (4, "reject")):
        gate, decided = f"r{number} waits for your decision", f"decision on r{number}: it is {word}"
        assert shown.index(gate) < shown.index(decided)


@pytest.mark.parametrize("path", [*LESSONS, RECORDED], ids=lambda path: path.stem)
def test_a_lesson_is_committed_without_outputs(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)
    assert len({cell["id"] for cell in cells}) == len(cells)


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_a_lesson_predicts_before_it_compares(path):
    """Each comparison has its prediction in an earlier cell, and each exercise three hints."""
    sources = ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    asked: set[str] = set()
    for source in sources:
        for line in source.splitlines():
            words = line.strip().split('"')
            if words[0] == "predict(":
                asked.add(words[1])
            elif words[0] == "compare(":
                assert words[1] in asked
    assert len(asked) >= 3
    assert "\n".join(sources).count("<summary>Hint ") == 9


def recorded(name: str, problem: str, key: str) -> list[float]:
    """Median times of a problem's revisions, from a record of the H200."""
    record = json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))
    if key == "points":
        return [point["measured_ms"] for point in record["points"] if point["problem"] == problem]
    return [item["median_ms"] for run in record["runs"] if problem in run["results"]
            for item in run["results"][problem]["rounds"]]  # fmt: skip


@pytest.mark.parametrize(
    ("variable", "name", "problem", "key"),
    [
        ("measured_ms", "h200-2026-11-21.json", "26_GELU_", "runs"),
        ("product_ms", "h200-2026-11-21.json", "1_Square_matrix_multiplication_", "runs"),
        ("norm_ms", "estimate-h200-2026-11-23.json", "40_LayerNorm", "points"),
    ],
)
def test_the_measured_times_of_a_lesson_are_those_of_the_record(variable, name, problem, key):
    path = next(path for path in LESSONS if path.stem.startswith("08_"))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    lines = "".join("".join(cell["source"]) + "\n" for cell in cells).splitlines()
    (line,) = (line for line in lines if line.startswith(f"{variable} = "))
    told = ast.literal_eval(line.partition(" = ")[2])
    assert list(told.values()) == recorded(name, problem, key)[: len(told)]


def cells_of(prefix: str) -> list[str]:
    (path,) = (ROOT / "notebooks").glob(f"{prefix}*.ipynb")
    return ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]


def told(prefix: str, variable: str) -> dict[str, float]:
    """Figures that a lesson states in a line ``variable = {…}``."""
    lines = "\n".join(cells_of(prefix)).splitlines()
    (line,) = (line for line in lines if line.startswith(f"{variable} = "))
    return ast.literal_eval(line.partition(" = ")[2])


def test_later_lessons_state_the_recorded_times_too():
    whole = recorded("h200-2026-11-21.json", "1_Square_matrix_multiplication_", "runs")
    rounds = told("10_", "product_ms")
    assert rounds == {name: whole[int(name[1:])] for name in rounds}
    results = ROOT / "benchmarks" / "results" / "products-h200-2026-11-29.json"
    rows = json.loads(results.read_text(encoding="utf-8"))["rows"]
    asked = {"dtype": "float16", "left": "A", "right": "B", "m": 4096, "n": 4096, "k": 4096}
    (row,) = (row for row in rows if asked.items() <= row.items())
    assert told("11_", "fp16_ms") == {name: round(ms, 4) for name, ms in row["ms"].items()}


@pytest.mark.parametrize(
    ("prefix", "session", "strategies"),
    [
        ("06_", "row_sums", ["", "cta-per-row"]),
        ("08_", "gelu", ["", "coalesced", "vectorise-128"]),
        ("10_", "staged", ["", "tensor-cores", "multistage-copies", "multistage-copies"]),
        ("11_", "hopper", ["", "tma-wgmma", "tma-wgmma"]),
    ],
)
def test_a_session_in_which_a_student_rejects_every_round_is_compared_too(prefix, session, strategies):
    """The cells that read the session's rounds; a strategy may come twice."""
    rounds = pd.DataFrame(
        {
            "strategy": strategies, "decision": "rejected", "gmem_sectors": 8.0, "warp_instructions": 4.0,
            "estimated_s": 0.01,
        },
        index=[f"r{number}" for number in range(len(strategies))],
    )  # fmt: skip
    compared = []
    cells = [cell for cell in cells_of(prefix) if f"{session}.rounds" in cell and "compare(" in cell]
    assert cells
    for seen in (rounds.iloc[:0], rounds):
        compared.clear()
        names = {session: SimpleNamespace(rounds=seen), "compare": lambda *pair: compared.append(pair)}
        for cell in cells:
            exec(cell, names)
    assert compared


def test_no_two_notebooks_ask_for_a_prediction_of_one_name():
    """They lie in one folder and share its file of predictions; one that was compared stays."""
    asked: dict[str, str] = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        names = re.findall(r'^predict\("([^"]+)"', "\n".join(cells_of(path.stem)), re.MULTILINE)
        for name in names:
            assert asked.setdefault(name, path.stem) == path.stem, name
        assert len(names) == len(set(names))
    assert len(asked) > 50


def test_each_lesson_names_the_next():
    for path, following in zip(LESSONS, [*LESSONS[1:], RECORDED], strict=True):
        assert f"]({following.name})" in cells_of(path.stem)[-1]


def test_every_lesson_is_tested():
    assert [path.stem for path in LESSONS] == list(SHOWN)
