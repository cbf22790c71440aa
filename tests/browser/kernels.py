"""Installs older ipykernels beside the one of this environment, so that the suite can run on each.

``python tests/browser/kernels.py FOLDER 6.31.0 7.3.0`` makes one small environment a version under FOLDER
and prints the settings with which the suite finds them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path


def add(folder: Path, version: str) -> str:
    """Make the environment and its kernelspec; gives the kernelspec's name."""
    name = f"ipykernel-{version}"
    home = folder / name
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=False)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", f"ipykernel=={version}"], check=True)
    # Its own packages come first; torch, the DSL and the rest are those of this environment.
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    shared = sysconfig.get_path("purelib")
    Path(own, "shared.pth").write_text(f"import site; site.addsitedir({shared!r})\n")
    spec = folder / "kernels" / name
    spec.mkdir(parents=True, exist_ok=True)
    command = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": command, "display_name": name, "language": "python"})
    )
    return name


if __name__ == "__main__":
    target = Path(sys.argv[1]).resolve()
    names = [add(target, version) for version in sys.argv[2:]]
    sys.stdout.write(f"JUPYTER_PATH={target} CUTEGEN_BROWSER_KERNELS={','.join(['python3', *names])}\n")
