"""The Dockerfile and the dev container make the environment of `binder/`, and leave solutions out."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORED = [
    line
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    if line[:1] not in {"", "#"}
]
POST_BUILD = (ROOT / "binder" / "postBuild").read_text(encoding="utf-8")


def test_python_is_the_one_of_binder():
    version = (ROOT / "binder" / "runtime.txt").read_text(encoding="utf-8").strip().removeprefix("python-")
    assert f"\nFROM python:{version}-slim-bookworm\n" in DOCKERFILE


def test_the_steps_are_those_of_binder_in_order():
    first, last = DOCKERFILE.index("-r binder/requirements.txt"), DOCKERFILE.index("bash binder/postBuild")
    assert DOCKERFILE.index("COPY constraints.txt") < first < DOCKERFILE.index(" . .") < last
    assert last < DOCKERFILE.index("USER student")


def test_what_is_installed_and_started_is_in_the_context():
    (opened,) = re.findall(r'"(notebooks/\S+)"\]', DOCKERFILE)
    needed = (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "prompts",
        "cutegen_nb",
        "constraints.txt",
        "binder",
        opened,
    )
    for name in needed:
        assert (ROOT / name).exists()
        assert not any(name == line or name.startswith(f"{line}/") for line in IGNORED)


def test_solutions_and_what_git_ignores_are_left_out():
    assert {"notebooks/solutions", "notebooks/assignments", ".git", ".venv", "**/.cutegen"} <= set(IGNORED)
    for line in IGNORED:
        inside = not line.startswith(("**", ".")) and line not in {"dist", "build", "site"}
        assert not inside or (ROOT / line).is_dir(), f"{line} is not there"


def test_the_dev_container_builds_that_file_for_a_user_it_makes():
    stated = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    place = ROOT / ".devcontainer"
    assert (place / stated["build"]["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (place / stated["build"]["context"]).resolve() == ROOT
    assert re.search(rf"useradd .* {stated['remoteUser']}\n", DOCKERFILE)
    assert f"EXPOSE {stated['forwardPorts'][0]}\n" in DOCKERFILE
