"""Programs of the guide for sm_90a: compiled on any machine, run where there is such a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from cutegen_nb.prompting.library import shipped_library

PROGRAMS = [
    code
    for text in shipped_library().chapters().values()
    for code in re.findall(r"^```python sm_90a\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
]


def run(program: str, tmp_path, **variables: str) -> None:
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-W", "ignore", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_is_a_program_for_hopper():
    assert len(PROGRAMS) == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_compiles_for_hopper_without_a_gpu(program, tmp_path):
    definitions, _, call = program.partition("\na = torch")
    call = f"\na = torch{call}".replace('device="cuda", ', "").replace("product(*", "cute.compile(product, *")
    compiled = call.partition("torch.testing")[0]
    assert "cute.compile(product" in compiled
    run(definitions + compiled, tmp_path, CUTE_DSL_ARCH="sm_90a")


@pytest.mark.gpu
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_right_on_hopper(program, tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip(
            f"needs a GPU of compute capability 9.0; this one has {torch.cuda.get_device_capability()}"
        )
    run(program, tmp_path)
