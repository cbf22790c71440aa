from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "notebooks" / "01_quickstart.ipynb"


def outputs(notebook: dict) -> list[dict]:
    return [output for cell in notebook["cells"] for output in cell.get("outputs", [])]


def test_committed_notebooks_hold_no_widget_and_no_path_of_a_machine():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert "application/vnd.jupyter.widget" not in text, path.name
        assert "widgets" not in json.loads(text)["metadata"], path.name
        assert not re.search(r"(/home/|/root/|/tmp/|/usr/|/site-packages/|C:\\\\)", text), path.name


def test_a_newcomer_has_ten_cells():
    assert len(json.loads(QUICKSTART.read_text(encoding="utf-8"))["cells"]) == 10


@pytest.mark.long  # each of its magics has tests of its own, and every lesson runs in `make test-long`
def test_the_quickstart_runs_under_nbmake(tmp_path):
    copy = shutil.copy(QUICKSTART, tmp_path)
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
        copy,
    ]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-2000:]
    notebook = json.loads(Path(copy).read_text(encoding="utf-8"))
    shown = json.dumps(outputs(notebook))
    assert "coalesced" in shown
    assert "application/vnd.jupyter.widget" not in json.dumps(notebook)
    assert str(tmp_path) not in shown
    assert len(json.dumps(notebook)) < 1_000_000
    assert (tmp_path / "gelu_kernel.py").is_file()
