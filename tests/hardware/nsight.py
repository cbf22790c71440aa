"""Reads Nsight Compute's counters of every traffic pattern and program, on a GPU; on the simulator, our counts of the same.

    python tests/hardware/nsight.py --out FOLDER [--deadline SECONDS]      needs `ncu` on the path
    python tests/hardware/nsight.py --out FOLDER --simulate

Writes ``nsight.json``: per group what ``ncu --csv --page raw`` printed, or ``counted.json`` with our counters.  Also, on a
GPU, ``metrics.txt.gz`` (every metric this chip has) and ``programs.ncu-rep`` (the full set, of the small programs).

Metric names differ between chips and releases and one unknown name makes ``ncu`` refuse all, so names are chosen from the
chip's own list.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from contextlib import nullcontext
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent.parent)]

from cutegen_nb.core.nsight.names import COUNTERPARTS  # noqa: E402

ARCHITECTURE = "sm_90a"
GROUPS = ("global", "shared", "matrix", "programs")
KERNELS = "regex:(traffic|relu|softmax|product)_kernel"
QUERY_S, GROUP_S = 40.0, 90.0
"""Time that listing metrics, and profiling a group, may take."""

CERTAIN = (
    *(f"l1tex__t_{what}_pipe_lsu_mem_global_op_{way}" for what in ("sectors", "requests") for way in ("ld", "st", "atom", "red")),
    "l1tex__data_pipe_lsu_wavefronts_mem_shared", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st",
)  # fmt: skip
"""Names that every chip since Volta has; all that is asked where the list cannot be read."""

_ALL, _SHARED, _MATRIX = GROUPS, ("shared", "matrix", "programs"), ("matrix", "programs")
WANTED = (
    (r"l1tex__t_(sectors|requests)_pipe_lsu_mem_global_op_(ld|st|atom|red)", 8, _ALL),
    (r"l1tex__t_(sectors|requests)_pipe_lsu_mem_global_op_ldgsts\w*", 8, _MATRIX),
    (r"l1tex__data_pipe_lsu_wavefronts_mem_shared(_op_\w+)?", 12, _SHARED),
    (r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared(_op_\w+)?", 8, _SHARED),
    (r"sm(sp)?__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared(_op_\w+)?", 10, _SHARED),
    (r"sm(sp)?__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared(_op_\w+)?", 8, _SHARED),
    (r"sm(sp)?__sass_l1tex_t_(sectors|requests)_pipe_lsu_mem_global(_op_\w+)?", 16, ("global", *_MATRIX)),
    (r"sm(sp)?__sass_l1tex_tags_mem_global(_op_\w+)?", 4, ("global", *_MATRIX)),
    (r"sm__(sass_)?inst_executed_pipe_tensor\w*", 20, _MATRIX),
    (r"smsp__(sass_)?inst_executed_op_(ldsm|stsm|ldgsts|shared|global)\w*", 20, _ALL),
    (r"lts__t_(sectors|requests)_srcunit_tex_op_(read|write|atom|red)", 8, ("global",)),
    (r"smsp__inst_executed|launch__registers_per_thread", 2, _ALL),
)
"""Patterns of names, most wanted first; how many of each at most; and for which groups."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("--deadline", type=float, default=240.0)
    parser.add_argument("--launch", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.launch:
        return _launch(arguments.launch)
    if arguments.simulate:
        (arguments.out / "counted.json").write_text(json.dumps(simulated(), indent=1))
        return 0
    _profile_all(arguments.out, time.monotonic() + arguments.deadline)
    return 0


# --- under Nsight Compute ----------------------------------------------------------------------------------------------


def _profile_all(out: Path, stop_at: float) -> None:
    listed = _listed(out)
    record: dict[str, object] = {"groups": {}}
    for group in GROUPS:
        chosen = chosen_metrics(listed, group) if listed else list(CERTAIN)
        print(f"{group}: {len(listed)} metrics listed, {len(chosen)} asked for", flush=True)
        left = stop_at - time.monotonic()
        if left < 10:
            print(f"{group}: no time left", flush=True)
            continue
        found = _profiled(group, chosen, out, min(left, GROUP_S))
        refused = {
            name
            for name in chosen
            for line in str(found["log"]).splitlines()
            if "==ERROR==" in line and name in line
        }
        for again in ([name for name in chosen if name not in refused], list(CERTAIN)):
            left = stop_at - time.monotonic()
            if not _kernels(found["csv"]) and again != chosen and left > 10:
                print(f"{group}: again with {len(again)} metrics", flush=True)
                first = found["log"]
                found = _profiled(group, again, out, min(left, GROUP_S))
                found["first_log"] = first
        unlisted = [name for one in COUNTERPARTS for name in one.metrics if name not in chosen]
        if unlisted and stop_at - time.monotonic() > 60:
            more = _profiled(group, list(dict.fromkeys(unlisted)), out, 30.0, plain=True)
            found |= {"more_csv": more["csv"], "more_log": more["log"]}
        record["groups"][group] = found  # type: ignore[index]
        print(f"{group}: {_kernels(found['csv'])} kernels in {found['seconds']:.0f} s", flush=True)
        (out / "nsight.json").write_text(json.dumps(record))
    left = stop_at - time.monotonic()
    if left > 5:
        code, text = _run(
            ["ncu", "--query-metrics", "--query-metrics-mode", "all", "--chips", "gh100"], min(left, QUERY_S)
        )
        print(f"ncu --query-metrics-mode all: {code}, {len(text)} characters", flush=True)
        if code == 0:
            (out / "metrics.txt.gz").write_bytes(gzip.compress(text.encode()))


def _listed(out: Path) -> list[str]:
    """Names of this chip's metrics, without the `.sum` and the like."""
    for words in (["--chips", "gh100"], [], ["--query-metrics-mode", "all", "--chips", "gh100"]):
        code, text = _run(["ncu", "--query-metrics", *words], QUERY_S)
        names = sorted(
            {found.partition(".")[0] for found in re.findall(r"^\s*([a-z0-9]+__[\w.]+)", text, re.MULTILINE)}
        )
        print(f"ncu --query-metrics {' '.join(words)}: {code}, {len(names)} names", flush=True)
        if names:
            (out / "metrics.txt.gz").write_bytes(gzip.compress(text.encode()))
            return names
    return []


def chosen_metrics(listed: list[str], group: str) -> list[str]:
    """Those of the list that are wanted for a group."""
    mapped = [name for one in COUNTERPARTS for name in one.metrics]
    chosen = [name for name in dict.fromkeys(mapped) if name in listed]
    for pattern, most, groups in WANTED:
        if group not in groups:
            continue
        chosen += [name for name in listed if re.fullmatch(pattern, name) and name not in chosen][:most]
    return chosen


def _profiled(
    group: str, metrics: list[str], out: Path, limit_s: float, *, plain: bool = False
) -> dict[str, object]:
    """One run of ``ncu`` over a group's kernels."""
    table, began = out / f"{group}.csv", time.monotonic()
    names = ",".join(name if name.startswith("launch__") else f"{name}.sum" for name in metrics)
    common = ["--clock-control", "none", "--target-processes", "all", "-k", KERNELS, "--metrics", names]
    program = [
        sys.executable,
        "-W",
        "ignore",
        str(Path(__file__).resolve()),
        "--out",
        str(out),
        "--launch",
        group,
    ]
    if group == "programs" and len(metrics) > len(CERTAIN) and not plain:
        report = out / "programs.ncu-rep"
        code, log = _run(
            ["ncu", *common, "--set", "full", "--import-source", "yes", "-f", "-o", str(report), *program],
            limit_s,
        )
        read, text = _run(["ncu", "--import", str(report), "--csv", "--page", "raw"], 30.0)
        log, text = (log, text) if read == 0 else (log + text, "")
    else:
        code, log = _run(
            ["ncu", *common, "--csv", "--page", "raw", "--log-file", str(table), *program], limit_s
        )
        text = table.read_text() if table.exists() else ""
        table.unlink(missing_ok=True)
    print(f"{group}: ncu ended with {code}; {log.strip()[-400:]}", flush=True)
    return {"csv": text, "log": log[-4000:], "code": code, "seconds": time.monotonic() - began}


def _kernels(text: object) -> int:
    return len(re.findall(r"_kernel_", str(text)))


def _run(command: list[str], limit_s: float) -> tuple[int, str]:
    """Exit status and output of a command; it and its children end at the limit."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
    except OSError as problem:
        return 127, str(problem)
    try:
        text, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)  # ncu then writes what it has
        try:
            text, _ = process.communicate(timeout=8)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
        return 124, text
    return process.returncode, text


# --- the kernels, under either -----------------------------------------------------------------------------------------


def _launch(group: str) -> int:
    from suite import counting

    for name, launch in counting.launchers(group).items():
        try:
            launch()
        except Exception:  # noqa: BLE001 - one kernel that fails leaves the others to be counted
            print(f"FAILED {name}: {traceback.format_exc()[-600:]}", flush=True)
    return 0


def simulated() -> dict[str, dict[str, object]]:
    """Our counters of every kernel by name; a failure is told under ``failure``."""
    from cutegen_nb.simulator.host import simulation as bridge

    os.environ.update(bridge.prepare_environment(ARCHITECTURE))
    import torch

    torch.set_num_threads(1)
    simulation = bridge.install(ARCHITECTURE)
    from suite import counting

    counted: dict[str, dict[str, object]] = {}
    with simulation.present_as_cuda() if simulation else nullcontext():
        for group in GROUPS:
            for name, launch in counting.launchers(group).items():
                simulation.reset()
                try:
                    launch()
                    told = [f"{one.kind}: {one.message}" for one in simulation.findings]
                    counters = dataclasses.asdict(simulation.launches[-1].counters)
                    counted[name] = {"group": group, "findings": told, **counters}
                except Exception:  # noqa: BLE001 - each kernel for itself
                    counted[name] = {"group": group, "failure": traceback.format_exc()[-600:]}
    return counted


if __name__ == "__main__":
    sys.exit(main())
