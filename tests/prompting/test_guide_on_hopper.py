"""Programs of the guide for sm_90a, on the simulator and where there is such a GPU."""

from __future__ import annotations

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


def run(program: str, tmp_path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-W", "ignore", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_there_is_a_program_for_hopper():
    assert len(PROGRAMS) == 3


@pytest.mark.parametrize(
    "program", [PROGRAMS[0], *(pytest.param(one, marks=pytest.mark.long) for one in PROGRAMS[1:])]
)
def test_it_is_right_and_clean_on_the_simulator(program, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(program)
    command = [sys.executable, "-m", "cutegen_nb", "simulate", "--arch", "sm_90a", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    launches = program.count(".launch(")
    said = "1 launch was" if launches == 1 else f"{launches} launches were"
    assert f"{said} executed in full and checked: no finding." in done.stderr


@pytest.mark.gpu
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_right_on_hopper(program, tmp_path):
    torch = pytest.importorskip("torch")
    if torch.cuda.get_device_capability() != (9, 0):
        pytest.skip(
            f"needs a GPU of compute capability 9.0; this one has {torch.cuda.get_device_capability()}"
        )
    run(program, tmp_path)
