"""What a user installs: the built wheel, with the source tree out of the way."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds the wheel's files and nothing of the source tree."""
    built = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = built.glob("*.whl")
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    return site


def run(installed, *arguments):
    """A fresh interpreter in that folder, which Python searches first."""
    return subprocess.run(
        [sys.executable, *arguments], cwd=installed, capture_output=True, text=True, timeout=120, check=False
    )


def test_the_wheel_carries_every_file_of_the_package_and_the_prompts(installed):
    """Kernels, exploits, templates of reports, the panel's script, shipped records, and no cache."""
    package = installed / "cutegen_nb"
    for made, folder in ((package, ROOT / "cutegen_nb"), (package / "prompts", ROOT / "prompts")):
        wanted = {p.relative_to(folder) for p in folder.rglob("*") if p.is_file() and p.suffix != ".pyc"}

        assert len({path.suffix for path in wanted}) > 1
        assert {path for path in wanted if not (made / path).is_file()} == set()
    for name in ("report/templates/page.css", "knowledge/h200.json", "notebook/static", "demo_problem.py"):
        assert (package / name).exists(), name


def test_the_wheels_package_is_the_one_that_runs_and_finds_its_prompts(installed):
    code = (
        "import cutegen_nb; from cutegen_nb.prompting import library; "
        "print(cutegen_nb.__file__); print(len(library.shipped_library().strategies()))"
    )

    done = run(installed, "-c", code)

    assert done.returncode == 0, done.stderr
    where, count = done.stdout.split()
    assert Path(where).is_relative_to(installed)
    assert int(count) > 0


def test_the_wheel_answers_doctor(installed):
    done = run(installed, "-m", "cutegen_nb", "doctor", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["fine"] is True
