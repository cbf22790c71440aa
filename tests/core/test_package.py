"""The package itself is light to import."""

from __future__ import annotations

import subprocess
import sys


def test_importing_the_package_loads_no_heavy_library():
    heavy = {"torch", "cutlass", "IPython", "openai", "matplotlib", "pandas", "numpy"}
    code = f"import sys, cutegen_nb; print(sorted({heavy!r} & set(sys.modules)))"

    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert run.stdout.strip() == "[]"
    assert run.stderr == ""
