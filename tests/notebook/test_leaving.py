"""The end of an IPython in a terminal: no traceback, no process left."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TYPED = """%load_ext cutegen_nb
source = open({path!r}).read()
print(get_ipython().run_cell_magic("cutegen", "check limits/1", source))
exit
"""


@pytest.mark.slow
@pytest.mark.long
def test_ipython_ends_without_a_word_after_an_answer_was_checked(tmp_path):
    typed = TYPED.format(path=str(ROOT / "notebooks" / "solutions" / "limits_1.py"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner"], cwd=tmp_path, env=environment,
        input=typed, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "limits/1 · close to the floor: solved, 3 of 3 points" in ran.stdout
    assert "Traceback" not in ran.stdout + ran.stderr
    assert ran.returncode == 0
