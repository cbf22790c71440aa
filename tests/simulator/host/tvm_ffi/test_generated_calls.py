"""Kernels of the offline author, called through TVM-FFI with tensors as programs have them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = "generated_calls"
ROOT = Path(__file__).parents[4]
ON_GPU = "import runpy, sys\nfor case in runpy.run_path(sys.argv[1])['CASES']:\n    case(None)\n"


@pytest.mark.long
def test_a_generated_kernel_takes_the_tensor(outcome):
    assert outcome == "ok", outcome


@pytest.mark.gpu
def test_so_it_does_on_a_gpu(tmp_path):
    pytest.importorskip("tvm_ffi")
    program = ROOT / "tests" / "simulator" / "programs" / f"{PROGRAM}.py"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])  # the DSL may be on it
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ON_GPU, str(program)],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
