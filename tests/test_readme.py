"""The README's commands do what it says: its files are written, its commands run, in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FILES = re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ cutegen-nb (.*)$", README, re.MULTILINE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's folder with the README's files in it."""
    made = tmp_path_factory.mktemp("readme")
    for name, text in FILES:
        (made / name).write_text(text, encoding="utf-8")
    return made


def cutegen_nb(folder, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "cutegen_nb", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_command_shown_succeeds_in_the_order_shown(folder):
    assert len(FILES) == 4
    assert len(COMMANDS) == 8
    for command in COMMANDS:
        done = cutegen_nb(folder, *command.split())

        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert (folder / "softmax.html").stat().st_size > 0
    assert "gC[i] = gA[i] + gB[i]" in (folder / "add.html").read_text()


def test_without_its_guard_the_readmes_kernel_is_out_of_bounds(folder):
    guarded = (folder / "my_twice.py").read_text()
    guard = "    if i < gX.shape[0]:\n        gY[i]"
    assert guard in guarded
    (folder / "unguarded.py").write_text(guarded.replace(guard, "    gY[i]"))

    done = cutegen_nb(folder, "evaluate", "twice.py", "unguarded.py")

    assert done.returncode == 1
    assert "OUT_OF_BOUNDS" in done.stdout
    assert "gY[i] = gX[i] + gX[i]" in done.stdout


def test_every_command_of_the_makefile_it_names_is_there():
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

    assert set(re.findall(r"^make ([\w-]+)", README, re.MULTILINE)) <= targets


def test_it_names_every_verdict_that_this_version_gives():
    from cutegen_nb.core.evaluation import Verdict

    named = set(
        re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)*\b", README.split("A verdict is one of")[1].split(".")[0])
    )

    assert named == {verdict.value for verdict in Verdict}
