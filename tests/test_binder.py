"""The files that repo2docker reads agree with the rest of the repository."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
BINDER = ROOT / "binder"
LINES = [
    line
    for line in (BINDER / "requirements.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
POST_BUILD = (BINDER / "postBuild").read_text(encoding="utf-8")


def test_torch_is_the_cpu_build_of_the_version_that_the_tests_run_with():
    (pinned,) = re.findall(
        r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert f"torch=={pinned}+cpu" in LINES


def test_it_comes_from_the_index_that_make_uses():
    (used,) = re.findall(r"--extra-index-url \S+", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert used in LINES


def test_constraints_are_those_of_the_repository():
    """Pip takes a path in a file of requirements relative to that file."""
    (given,) = (line.split()[1] for line in LINES if line.startswith("-c "))
    assert (BINDER / given).resolve() == ROOT / "constraints.txt"


def test_the_package_is_installed_with_an_extra_that_exists():
    (extra,) = re.findall(r'pip install --no-cache-dir -c constraints\.txt "\.\[(\w+)\]"', POST_BUILD)
    assert "jupyterlab" in " ".join(PROJECT["optional-dependencies"][extra])


def test_python_is_one_that_the_package_names():
    version = (BINDER / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_the_last_step_can_be_run_and_is_sound_shell():
    assert os.access(BINDER / "postBuild", os.X_OK)
    assert POST_BUILD.startswith("#!/bin/bash\n")
    subprocess.run(["bash", "-n", str(BINDER / "postBuild")], check=True)


def test_nothing_else_lies_there():
    """repo2docker takes an `environment.yml` before `requirements.txt`, and leaves the latter out."""
    assert {path.name for path in BINDER.iterdir()} == {"postBuild", "requirements.txt", "runtime.txt"}
