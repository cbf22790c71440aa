"""The template's imports and settings, as for a GPU but on a machine that needs none, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

AHEAD = """
import json, os, sys
from cutegen_nb.evaluator.worker import warmup, worker

variables = dict(os.environ)
worker.prepare("cuda", "sm_90a", sys.argv[1])
changed = sorted(set(dict(os.environ).items()) ^ set(variables.items()))
found = {"changed variables": changed, "forks lack CUDA": warmup.fork_lacks_cuda()}

from cutlass._mlir_helpers import op

here = [op._fast_frameinfo(sys._getframe()) for _ in range(2)]
found["positions looked up"] = len(set(map(id, here)))

import torch
from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch

before = set(sys.modules)
with ForwardWatch(""):
    torch.empty_like(torch.ones(3))
found["imported later"] = sorted(set(sys.modules) - before)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def ahead(tmp_path_factory):
    command = [sys.executable, "-c", AHEAD, str(tmp_path_factory.mktemp("scratch"))]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUTE_DSL_DISABLE_FILE_CACHING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.long
def test_an_operation_that_is_watched_imports_nothing_any_more(ahead):
    assert ahead["imported later"] == []


def test_the_environment_is_left_as_it_was_but_for_the_lines_that_layouts_are_read_by(ahead):
    assert ahead["changed variables"] == [["CUTE_DSL_LINEINFO", "1"]]


def test_its_forks_can_use_cuda(ahead):
    assert not ahead["forks lack CUDA"]


def test_a_source_position_of_a_traced_operation_is_looked_up_once(ahead):
    # Without this, compiling a long kernel took nearly thirty times as long.
    assert ahead["positions looked up"] == 1
