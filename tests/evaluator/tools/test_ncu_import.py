"""Reports of Nsight Compute that a person brings."""

from __future__ import annotations

import lzma
import os
import stat
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.evaluator.tools.ncu_import import import_report

HERE = Path(__file__).parents[1]
DATA = HERE.parent / "hardware" / "data" / "nsight"


@pytest.fixture
def ncu(tmp_path, monkeypatch):
    """Puts a program called ncu before all others; `ncu(body)` writes it in Python."""

    def put(body):
        path = tmp_path / "bin" / "ncu"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\nimport os, shutil, sys, time\nargs = sys.argv[1:]\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
        return path

    return put


def test_a_report_that_our_reader_does_not_know_is_read_through_ncu(ncu, tmp_path):
    for page, file in (("raw", "large_raw.csv"), ("source", "large_source.csv")):
        (tmp_path / page).write_bytes(lzma.decompress((DATA / f"{file}.xz").read_bytes()))
    ncu(
        f"page = args[args.index('--page') + 1]\nsys.stdout.write(open({str(tmp_path)!r} + '/' + page).read())"
    )
    strange = tmp_path / "strange.ncu-rep"
    strange.write_bytes(b"NVR\0" + b"\xff" * 64)
    found = import_report(strange)
    assert len(found.kernels) == 20
    assert found.device == "NVIDIA H200"
    assert any(one.line for one in found.kernels[0].instructions)


def test_a_file_that_nobody_can_read_says_what_could(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    other = tmp_path / "other.ncu-rep"
    other.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match=r"does not begin with NVR.*ncu_report.*ncu on PATH"):
        import_report(other)
    with pytest.raises(UsageError, match="cannot be opened: No such file"):
        import_report(tmp_path / "missing.ncu-rep")
