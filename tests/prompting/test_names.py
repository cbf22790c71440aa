"""Every name of the DSL that a prompt mentions exists in the installed version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from cutegen_nb.prompting.library import prompts_folder

_NAME = re.compile(r"(?<![\w.])((?:cute|cutlass)(?:\.\w+)+)")
_LOOK = """
import json, sys
import cutlass
from cutlass import cute

def exists(name):
    found = {"cute": cute, "cutlass": cutlass}[name.split(".")[0]]
    for part in name.split(".")[1:]:
        if not hasattr(found, part):
            return False
        found = getattr(found, part)
    return True

print(json.dumps([name for name in json.load(sys.stdin) if not exists(name)]))
"""


def mentioned() -> dict[str, list[str]]:
    """Files by the dotted name they mention."""
    found: dict[str, list[str]] = {}
    for path in sorted(Path(prompts_folder()).rglob("*")):
        if path.suffix in {".jinja", ".toml", ".txt", ".md"}:
            for name in set(_NAME.findall(path.read_text(encoding="utf-8"))):
                found.setdefault(name, []).append(path.name)
    return found


def test_every_dotted_name_of_the_dsl_in_a_prompt_exists():
    names = mentioned()
    assert len(names) > 25
    ran = subprocess.run(
        [sys.executable, "-c", _LOOK],
        input=json.dumps(list(names)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    missing = json.loads(ran.stdout)
    assert not missing, {name: names[name] for name in missing}
