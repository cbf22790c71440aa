"""Runs the suite and records what every case gave: on this machine's GPU, or on the simulator with ``--simulate``.

    python tests/hardware/record.py --out FOLDER [--simulate] [--only WORD …] [--deadline SECONDS]

Batches run in a child process, because one illegal access ends a CUDA context: a batch that fails or hangs takes its child
with it, the next child goes on behind it, and its cases are then tried one by one.  Results are written as they come, so a
run that is cut short leaves what it had.  Writes ``results.npz`` and ``results.json``.  Needs torch, numpy and
nvidia-cutlass-dsl, and nothing else; counters are another program's work (``nsight.py``).
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from suite import batches, samples  # noqa: E402
from suite.cases import Case  # noqa: E402

ARCHITECTURE = "sm_90a"
SILENCE_S = 25.0
"""A child that says nothing for so long is given up; the first words need the imports and the first compilation."""

MOST_ALONE = 400
"""Cases of failed batches that are tried one by one; more mean that something else is wrong."""
MOST_STILLBORN = 2
"""Children in a row that may end before their first batch, until the run is given up."""


def main() -> int:
    arguments = _arguments()
    if arguments.child:
        return _child(arguments)
    stop_at = time.monotonic() + arguments.deadline
    arguments.out.mkdir(parents=True, exist_ok=True)
    cases = [one for one in batches.all_cases() if _wanted(one, arguments.only)]
    results, failures = {}, {}
    pending = [(name, [one.name for one in members]) for name, members in batches.batches(cases)]
    _run_children(pending, arguments, stop_at, results, failures)
    _write(arguments.out, cases, results, failures, arguments)  # what there is, should the rest be cut short
    alone = [(f"alone_{index}", [name]) for index, name in enumerate(failures)]
    if 0 < len(alone) <= MOST_ALONE:
        print(f"{len(alone)} cases were in a batch that failed; each now runs alone", flush=True)
        failures.clear()
        _run_children(alone, arguments, stop_at, results, failures)
    _write(arguments.out, cases, results, failures, arguments)
    _summarise(cases, results, failures)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write into")
    parser.add_argument("--simulate", action="store_true", help="run on the simulator")
    parser.add_argument(
        "--only", nargs="*", default=[], help="cases whose family or name contains one of these words"
    )
    parser.add_argument(
        "--deadline", type=float, default=600.0, help="seconds after which nothing new begins"
    )
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def _wanted(one: Case, words: list[str]) -> bool:
    return not words or any(word in one.name or word in one.family for word in words)


# --- the parent ------------------------------------------------------------------------------------------------------


def _run_children(pending, arguments, stop_at, results, failures) -> None:
    """Run batches in children until none is left, time is up, or children cannot even begin."""
    stillborn = 0
    while pending and time.monotonic() < stop_at and stillborn < MOST_STILLBORN:
        finished, began = _run_child(pending, arguments, stop_at, results, failures)
        stillborn = 0 if began or finished else stillborn + 1
        pending = pending[finished:]
        if pending and began and time.monotonic() < stop_at:
            name, members = pending[0]
            print(f"batch {name} was not finished", flush=True)
            failures.update(
                {one: failures.get(one, "the process ended or hung in its batch") for one in members}
            )
            pending = pending[1:]
    reason = (
        "no time was left" if stillborn < MOST_STILLBORN else "the process that runs cases could not start"
    )
    for _, members in pending:
        failures.update({name: failures.get(name, reason) for name in members})


def _run_child(pending, arguments, stop_at, results, failures) -> tuple[int, bool]:
    """One child over these batches; how many it dealt with, and whether it began one more."""
    with tempfile.TemporaryDirectory() as folder:
        todo = Path(folder) / "todo.json"
        todo.write_text(json.dumps(pending))
        command = [
            sys.executable,
            "-W",
            "ignore",
            str(Path(__file__).resolve()),
            "--out",
            folder,
            "--child",
            str(todo),
        ]
        command += ["--simulate"] if arguments.simulate else []
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        dealt_with, began = 0, False
        try:
            for line in _lines(child, stop_at):
                began = began or line.startswith("BEGIN ")
                if line.startswith("RESULT "):
                    dealt_with, began = dealt_with + 1, False
                    _take(json.loads(line[7:]), Path(folder), results, failures)
        finally:
            _end(child)
    return dealt_with, began


def _take(answer, folder: Path, results, failures) -> None:
    for one in answer["findings"]:
        print(f"FINDING in batch {answer['batch']}: {one}", flush=True)
    if answer["failure"]:
        failures.update(dict.fromkeys(answer["cases"], answer["failure"]))
        print(
            f"batch {answer['batch']} failed: {answer['failure'].strip().splitlines()[-1][:300]}", flush=True
        )
        return
    with np.load(folder / f"{answer['batch']}.npz") as loaded:
        results.update({name: loaded[f"case{index}"] for index, name in enumerate(answer["cases"])})
    print(f"batch {answer['batch']}: {len(answer['cases'])} cases, {answer['seconds']:.2f} s", flush=True)


def _lines(child, stop_at):
    """Lines of a child's output; ends when it ends, is silent for too long, or time is up."""
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        os.set_blocking(child.stdout.fileno(), False)
        rest = ""
        heard = time.monotonic()
        while time.monotonic() < stop_at and time.monotonic() - heard < SILENCE_S:
            if not selector.select(timeout=0.5):
                continue
            text = os.read(child.stdout.fileno(), 1 << 16).decode(errors="replace")
            if not text:
                return
            heard = time.monotonic()
            *whole, rest = (rest + text).split("\n")
            yield from whole


def _end(child) -> None:
    """End the child and whatever it started."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()


def _write(out: Path, cases, results, failures, arguments) -> None:
    known = [one for one in cases if one.name in results]
    np.savez_compressed(
        out / "results.npz", **{f"case{index}": results[one.name] for index, one in enumerate(known)}
    )
    record = {
        "machine": _machine(simulate=arguments.simulate),
        "cases": {one.name: samples.digest(one) for one in known},
        "failures": failures,
    }
    (out / "results.json").write_text(json.dumps(record, indent=1))


def _machine(*, simulate: bool) -> dict[str, str]:
    """Device, driver, versions and date; read by other processes, so that this one holds no device."""
    read = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "device": "simulator" if simulate else "",
        "driver": "",
    }
    if not simulate:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        text = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30).stdout
        read["device"], _, read["driver"] = (
            part.strip() for part in (text.splitlines() or [","])[0].partition(",")
        )
    from importlib.metadata import PackageNotFoundError, version

    for package in ("torch", "nvidia-cutlass-dsl", "numpy"):
        try:
            read[package] = version(package)
        except PackageNotFoundError:
            read[package] = "unknown"
    return read


def _summarise(cases, results, failures) -> None:
    families = dict.fromkeys(one.family for one in cases)
    for family in families:
        members = [one.name for one in cases if one.family == family]
        print(f"{family:24} {sum(name in results for name in members):5} of {len(members)} recorded")
    for name, problem in failures.items():
        print(f"NOT RECORDED {name}: {problem.strip().splitlines()[-1][:300]}")
    print(f"{len(results)} of {len(cases)} cases recorded")


# --- the child -------------------------------------------------------------------------------------------------------


def _child(arguments) -> int:
    """Run the listed batches and answer a line for each; ends at the first failure that can leave a GPU's context broken."""
    pending = json.loads(Path(arguments.child).read_text())
    simulation = _simulation() if arguments.simulate else None
    from contextlib import nullcontext

    from suite import execution, programs

    known = {one.name: one for one in batches.all_cases()}
    with simulation.present_as_cuda() if simulation else nullcontext():
        for batch, names in pending:
            began, failure = time.monotonic(), ""
            print(f"BEGIN {batch}", flush=True)
            try:
                if simulation:
                    simulation.reset()
                members = [known[name] for name in names]
                whole = members[0].family == "programs"
                found = programs.run(names) if whole else execution.run(batch, members)
                np.savez(
                    arguments.out / f"{batch}.npz",
                    **{f"case{index}": found[name] for index, name in enumerate(names)},
                )
            except Exception:  # noqa: BLE001 - the child's worker main: whatever it is, the parent records it
                failure = traceback.format_exc()[-3000:]
            told = [f"{one.kind}: {one.message}" for one in simulation.findings] if simulation else []
            answer = {
                "findings": told,
                "batch": batch,
                "cases": names,
                "seconds": time.monotonic() - began,
                "failure": failure,
            }
            print("RESULT " + json.dumps(answer), flush=True)
            if failure and not simulation and not _works():
                return 1
    return 0


def _works() -> bool:
    """Return whether the GPU's context outlived a failure."""
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def _simulation():
    from cutegen_nb.simulator.host import simulation as bridge

    os.environ.update(bridge.prepare_environment(ARCHITECTURE))
    import torch

    torch.set_num_threads(1)
    return bridge.install(ARCHITECTURE)


if __name__ == "__main__":
    sys.exit(main())
