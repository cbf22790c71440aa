"""Interrupts of a command: the first cancels it, one more within seconds is the same one, a later one ends it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.cli.interrupts import Interrupts

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([0.0], ["cancel"]),
        ([0.0, 0.001, 1.9], ["cancel"]),  # a terminal and a program around this one send both
        ([0.0, 2.5], ["cancel", "end"]),
        ([5.0, 5.1, 8.0], ["cancel", "end"]),
    ],
)
def test_the_first_cancels_and_one_seconds_later_ends(times, said):
    heard, clock = [], iter(times)
    handler = Interrupts(lambda: heard.append("cancel"), lambda: heard.append("end"), lambda: next(clock))
    for _ in times:
        handler()
    assert heard == said


STUCK = """
import asyncio, sys
from cutegen_nb.cli import interrupts
from cutegen_nb.cli.main import HANDLERS, main

async def stuck(options, terminal):
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("cancelled", flush=True)

interrupts._ENDING_S = 0.0
HANDLERS["checks"] = stuck
sys.exit(main(["checks"]))
"""


def test_a_command_that_does_not_end_when_it_is_cancelled_is_ended_by_the_next_interrupt():
    """A second interrupt raised KeyboardInterrupt somewhere in the loop, which could wait for ever after it."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        for line in ("begun\n", "cancelled\n"):
            assert process.stdout.readline() == line
            process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said == "cutegen-nb: interrupted; `cutegen-nb checks` again begins anew\n"
