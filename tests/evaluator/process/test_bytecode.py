"""Bytecode of torch and the DSL is found, written at the first import, or kept in the cache folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.evaluator.process import process_tree

NEVER, ELSEWHERE = "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Stand-in for torch in an installation without bytecode; returns its folder."""
    package = tmp_path / "site" / "torch"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr("cutegen_nb.evaluator.process.bytecode._LARGE", ("torch",))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return package


def variables(tmp_path, **given):
    seen = process_tree.environment({"XDG_CACHE_HOME": str(tmp_path / "cache"), **given}, Path("/scratch"))
    return {name: seen[name] for name in (NEVER, ELSEWHERE) if name in seen}


def test_bytecode_that_would_never_be_written_goes_to_the_cache_folder(installed, tmp_path):
    found = variables(tmp_path, **{NEVER: "1"})
    assert found == {ELSEWHERE: str(tmp_path / "cache" / "kernels-bytecode")}

    environment = {**os.environ, **found, "PYTHONPATH": str(installed.parent)}
    environment.pop(NEVER, None)
    subprocess.run([sys.executable, "-c", "import torch"], env=environment, check=True)
    assert list((tmp_path / "cache").rglob("torch/__init__*.pyc")), "the next start finds it there"
    assert not (installed / "__pycache__").exists(), "the person wants none beside the sources"


def test_bytecode_that_is_there_or_will_be_written_needs_nothing(installed, tmp_path):
    assert variables(tmp_path) == {}
    subprocess.run(
        [sys.executable, "-c", "import torch"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(installed.parent)},
        check=True,
    )
    assert variables(tmp_path, **{NEVER: "1"}) == {NEVER: "1"}


def test_a_persons_own_folder_for_bytecode_is_kept(installed, tmp_path):
    assert variables(tmp_path, **{ELSEWHERE: "/mine"}) == {ELSEWHERE: "/mine"}
