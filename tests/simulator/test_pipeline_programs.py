"""CuTe DSL kernels whose warps pass tiles over mbarriers, through the real compiler."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "bridge_template.py"), "sm_90a",
         str(HERE / "programs" / "pipelines.py")],
        capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path_factory.mktemp("working"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "RESULT" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    (found,) = json.loads(done.stdout.rpartition("RESULT")[2])["results"]
    assert "error" not in found, found["error"]
    return found


@pytest.mark.parametrize("way", ["by hand", "by pipeline"])
def test_tiles_pass_from_a_producer_to_a_consumer(pipelines, way):
    assert pipelines[way]
    assert pipelines["findings"] == []


def test_the_compiler_used_the_instructions_meant(pipelines):
    assert {
        "cp.async.mbarrier.arrive.noinc.shared.b64",
        "mbarrier.init.shared.b64",
        "mbarrier.try_wait.parity.shared.b64",
    } <= set(pipelines["names"])


def test_a_consumer_that_does_not_wait_is_found_out(pipelines):
    assert pipelines["without waiting"] == ["async-hazard"]
