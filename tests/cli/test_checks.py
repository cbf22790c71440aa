"""The command that lists every check."""

from __future__ import annotations

import json
import subprocess
import sys

from cutegen_nb.evaluator.catalog.catalog import CHECKS


def test_the_command_lists_every_check_and_imports_no_torch():
    code = (
        "import sys; from cutegen_nb.cli.main import main; status = main(['checks', '--json']); "
        "assert 'torch' not in sys.modules; sys.exit(status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["checks"]
    assert [item["name"] for item in found] == [item.name for item in CHECKS]
    keys = {"name", "protocol", "tier", "decides", "stops", "cost", "needs_gpu", "needs_simulator", "instead"}
    assert keys == set(found[0])
