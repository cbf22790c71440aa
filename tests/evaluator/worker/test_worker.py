"""Preparation of the process that all workers are forked from."""

from __future__ import annotations

import subprocess
import sys

import pytest

PREPARED = """
import torch
from cutegen_nb.evaluator.worker.worker import prepare
prepare("cuda", "sm_90a", {scratch!r}, plain=True)
print(torch.backends.cudnn.allow_tf32)
"""


@pytest.mark.slow
def test_no_worker_on_a_gpu_gives_the_reference_convolutions_in_tf32(tmp_path):
    script = PREPARED.format(scratch=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
