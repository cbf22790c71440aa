"""The entry point of the command line."""

import subprocess
import sys


def test_a_wrong_command_is_status_2_and_a_sentence():
    ran = subprocess.run(
        [sys.executable, "-m", "cutegen_nb", "demoo"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert "demo" in ran.stderr
    assert "Traceback" not in ran.stderr
