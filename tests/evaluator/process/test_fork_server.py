"""A template that cannot be started says why, and leaves nothing."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile

import pytest

from cutegen_nb.core.errors import EvaluatorError, WorkerDied
from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.fork_server import ForkServer


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Folder in which temporary folders are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def started():
    server = ForkServer("simulator", "sm_80")
    try:
        asyncio.run(server.ready())
    finally:
        server.close()


def test_an_import_that_fails_is_told_by_its_last_line(scratch, tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text(
        "raise ImportError('libcudart.so.13: cannot open shared object file')\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with pytest.raises(WorkerDied) as raised:
        started()
    said = str(raised.value)
    assert said.startswith(
        "The process that holds torch and the DSL ended while starting: ImportError: libcudart"
    )
    assert said.endswith("`cutegen-nb doctor` says what is missing.")
    assert list(scratch.iterdir()) == []


def test_a_python_that_is_gone_is_named(scratch, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(WorkerDied, match=r"could not be started .*; check /nowhere/python\."):
        started()
    assert list(scratch.iterdir()) == []


def test_without_room_for_its_folder_the_place_is_named(scratch, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(scratch / "missing"))
    with pytest.raises(EvaluatorError, match=r"No folder could be made in .*missing .*set TMPDIR"):
        started()


def test_what_a_dying_worker_writes_into_its_folder_goes_with_the_next_folder(scratch, monkeypatch):
    """A cancelled request's folder stayed where its worker wrote a file while the folder was removed."""
    server = ForkServer("simulator", "sm_80")
    server._scratch = scratch
    for name in ("run-1", "run-2"):
        (scratch / name).mkdir()
    remove, written = process_tree.remove_folder, []

    def removed_too_early(path):
        remove(path)
        if not written:
            written.append(path)
            path.mkdir()

    monkeypatch.setattr(process_tree, "remove_folder", removed_too_early)
    server.discard("run-1")
    assert {item.name for item in scratch.iterdir()} == {"run-1", "run-2"}
    server.discard("run-2")
    assert list(scratch.iterdir()) == []
