"""Real kernels, as JupyterLab and nbclient start them."""

from __future__ import annotations

import os
import sqlite3
import time
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).parents[2]

PROBLEM = """import torch
import torch.nn.functional as F

def gelu(x):
    return F.gelu(x) * 2.0

def get_inputs():
    return [torch.randn(64, 128)]
"""


@dataclass
class Ran:
    """What one cell gave."""

    status: str
    seconds: float
    text: str = ""
    error: str = ""
    outputs: list[dict] = field(default_factory=list)
    payload: list[dict] = field(default_factory=list)

    @property
    def mime_types(self) -> set[str]:
        return {kind for output in self.outputs for kind in output.get("data", {})}

    @property
    def plain(self) -> str:
        """Everything a person reads without HTML."""
        shown = "\n".join(output.get("data", {}).get("text/plain", "") for output in self.outputs)
        return f"{self.text}\n{shown}"


class Kernel:
    """A kernel with the extension loaded, in a folder of its own."""

    def __init__(self, folder: Path, *, attended: bool, name: str = "python3") -> None:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("CUTEGEN", "OPENAI"))}
        self.folder = folder
        self.attended = attended
        self.manager, self.client = start_new_kernel(
            kernel_name=name,
            cwd=str(folder),
            env={**kept, "PYTHONPATH": path, "IPYTHONDIR": str(folder / ".ipython")},
        )
        self.loaded = self.run("%load_ext cutegen_nb")

    def run(self, code: str, timeout: float = 120) -> Ran:
        ran = Ran("", 0.0)
        started = time.monotonic()

        def hear(message: dict) -> None:
            content, kind = message["content"], message["msg_type"]
            if kind == "stream":
                ran.text += content["text"]
            elif kind == "error":
                ran.error = "\n".join(content["traceback"])
            elif kind in {"display_data", "update_display_data", "execute_result"}:
                ran.outputs.append({**content, "kind": kind})

        reply = self.client.execute_interactive(
            code, allow_stdin=self.attended, output_hook=hear, timeout=timeout, store_history=False
        )
        ran.status, ran.seconds = reply["content"]["status"], time.monotonic() - started
        ran.payload = reply["content"].get("payload", [])
        return ran

    def complete(self, code: str) -> list[str]:
        reply = self.client.complete(code, len(code), reply=True, timeout=20)
        return reply["content"]["matches"]

    def gate(self) -> str:
        """Wait until something is asked or the session has ended."""
        return self.run("%cutegen wait").text

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=False)


def rows(folder: Path, query: str = "SELECT body FROM rounds ORDER BY number") -> list[str]:
    """A column of the session store, read as any other program would."""
    with sqlite3.connect(folder / ".cutegen" / "sessions.sqlite") as connection:
        return [row[0] for row in connection.execute(query)]
