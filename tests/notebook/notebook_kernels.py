"""Real kernels, as JupyterLab and nbclient start them."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.manager import start_new_kernel

WIDGET = "application/vnd.jupyter.widget-view+json"
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
    def panel(self) -> str:
        """Model of the panel that the cell shows."""
        (found,) = (item["data"][WIDGET]["model_id"] for item in self.outputs if WIDGET in item["data"])
        return found

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

    def send(self, panel: str, **state: object) -> None:
        """Set traits of a panel as a page does; `panel` is the model that `Ran.panel` names."""
        content = {"comm_id": panel, "data": {"method": "update", "state": state, "buffer_paths": []}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))

    def act(self, panel: str, action: str, **more: object) -> None:
        """Click in a panel: an action that answers the open question."""
        question = self.trait(panel, "view")["live"]["id"]
        self.send(panel, action={"id": uuid.uuid4().hex, "action": action, "question": question, **more})

    def trait(self, panel: str, name: str) -> Any:
        """A trait of a panel, as the kernel has it now."""
        code = (
            "import json\nfrom ipywidgets.widgets.widget import _instances\n"
            f"print(json.dumps(_instances[{panel!r}].{name}))"
        )
        ran = self.run(code)
        assert ran.status == "ok", ran.error
        return json.loads(ran.text)

    def until(self, panel: str, name: str, holds: Callable[[Any], object]) -> Any:
        """Wait until a trait of a panel is as it should be; returns it."""
        deadline = time.monotonic() + 120
        while not holds(found := self.trait(panel, name)):
            assert time.monotonic() < deadline, found
            time.sleep(0.1)
        return found

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
