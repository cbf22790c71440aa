"""A simulator to try written kernels on: one child process for all tests, restarted when it dies."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DEADLINE_S = 600  # against a hang only: a loaded machine takes minutes for a kernel over large windows
DEFAULTS = {
    "steps": None,
    "largest_offset": 2**31,
    "library": [],
    "words": "",
    "room": 0,
    "columns": 0,
    "threads": False,
    "applied": None,
}


class SimulatorChild:
    def __init__(self, architecture="sm_80"):
        self.process, self.architecture = None, architecture

    def _start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", str(HERE / "simulator_child.py"), self.architecture],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )

    def _line(self, start):
        """The next line that begins with `start`; kernels may print too."""
        while True:
            ready, _, _ = select.select([self.process.stdout], [], [], DEADLINE_S)
            line = self.process.stdout.readline() if ready else ""
            if not line:
                self.close()
                return None
            if line.startswith(start):
                return line.removeprefix(start)

    def ask(self, name, source, **options):
        """Answer to a request; the options and the form of the answer are in ``simulator_child``."""
        if self.process is None:
            self._start()
            assert self._line("READY") is not None, "the child did not start"
        request = {"name": name, "source": source, **DEFAULTS, **options}
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self._line("RESULT")
        return {"error": "the child died or hung"} if answer is None else json.loads(answer)

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@pytest.fixture(scope="session")
def offline_simulator():
    child = SimulatorChild()
    yield child
    child.close()


@pytest.fixture(scope="session")
def hopper_simulator():
    child = SimulatorChild("sm_90a")
    yield child
    child.close()
