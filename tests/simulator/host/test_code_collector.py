"""Code of kernels compiled for a GPU. Compiling needs none, so the DSL is used here as it is on a GPU host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.analysis.binary.listing import KernelCode, listings_of

PROGRAM = """
import json
import sys

import cutlass
from cutegen_nb.simulator.host.code_collector import CodeCollector
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def add_one(x: cute.Tensor, count: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    if thread < count:
        x[thread] = x[thread] + 1.0  # the store


@cute.jit
def run(x: cute.Tensor, count: cutlass.Int32):
    add_one(x, count).launch(grid=(1, 1, 1), block=(32, 1, 1))


collector = CodeCollector()
collector.install()
cute.compile(run, make_fake_compact_tensor(cutlass.Float32, (128,)), cutlass.Int32(3), options=sys.argv[1])
found = [[one.kernel, one.ptx, one.cubin.hex()] for one in collector.found()]
loaded = sorted(name for name in sys.modules if name.startswith("cutegen_nb.simulator."))
print(json.dumps([found, loaded]))
"""


def test_a_launcher_is_kept_once_and_compiled_for_other_shapes_as_without_us(tmp_path):
    # Lines double the time of a compilation, and an evaluation compiles for several shapes.
    script = tmp_path / "program.py"
    script.write_text(AGAIN)
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script)],
        env=os.environ | {"CUTE_DSL_ARCH": "sm_80", "PYTHONPATH": path},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    names, with_lines = json.loads(done.stdout.splitlines()[-1])
    assert len(names) == 1
    assert with_lines == [True, False, False]


AGAIN = (
    PROGRAM.rpartition("cute.compile")[0]
    + """
from cutlass.base_dsl import compiler

pipelines = []
compile_module = compiler.Compiler.compile


def noted(self, module, pipeline, *args, **kwargs):
    pipelines.append("dump-ptx-path=" in pipeline)
    return compile_module(self, module, pipeline, *args, **kwargs)


compiler.Compiler.compile = noted
compiled = cute.compile
for size in (128, 256, 512):
    compiled(run, make_fake_compact_tensor(cutlass.Float32, (size,)), cutlass.Int32(3))
print(json.dumps([[one.kernel for one in collector.found()], pipelines]))
"""
)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.first(1)
@pytest.mark.parametrize("options", ["--enable-tvm-ffi", ""])
def test_what_is_compiled_for_a_gpu_is_kept_with_its_lines_and_no_folder_is_left(tmp_path, options):
    script, temporary = tmp_path / "program.py", tmp_path / "temporary"
    script.write_text(PROGRAM)
    temporary.mkdir()
    path = os.pathsep.join([str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")])
    child = {"CUTE_DSL_ARCH": "sm_80", "TMPDIR": str(temporary), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, str(script), options],
        env=os.environ | child, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    ((kernel, ptx, cubin),), loaded = json.loads(done.stdout.splitlines()[-1])
    code = KernelCode(kernel=kernel, ptx=ptx, cubin=bytes.fromhex(cubin))
    texts = {one.language: one.rows() for one in listings_of([code], "sm_80", lambda _: "")}
    store = 1 + next(n for n, line in enumerate(PROGRAM.split("\n")) if "# the store" in line)
    for language, name in (("PTX", "st.global"), ("SASS", "STG")):
        assert any(name in row.text for row in texts[language] if row.line == store)
    assert list(temporary.glob("cutegen-*")) == []
    assert not any(name.startswith("cutegen_nb.simulator.machine") for name in loaded)
