"""Imports of the template for a GPU: none may start CUDA, which no fork could use any more."""

from __future__ import annotations

import subprocess
import sys

import pytest

IMPORTS = """
import torch

def refuse(*_):
    raise SystemExit("CUDA was started in the template")

torch.cuda.is_available = lambda: True
torch.cuda.get_rng_state = refuse

from cutegen_nb.evaluator.worker import warmup

warmup.import_early(compiler=True)

"""


@pytest.mark.slow
@pytest.mark.long  # test_warmup.py starts a template for a GPU, whose forks can use CUDA
def test_the_compiler_is_imported_without_starting_cuda():
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
