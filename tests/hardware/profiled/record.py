"""Profiles the programs of this folder and every plant with Nsight Compute on a GPU host, and packs what came of it.

    python tests/hardware/profiled/record.py --out FOLDER         on a GPU host with `ncu` on the path, about 2 minutes
    python tests/hardware/profiled/record.py --adopt FOLDER       here: into tests/hardware/data/nsight

Three runs: the large sizes under the full set (kept as CSV, raw and by line), the small sizes with counters and
sources (kept as a report), and kernels by others (kept as a report without the machine code of their libraries).
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import struct
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
DATA = HERE.parent / "data" / "nsight"
sys.path[:0] = [str(ROOT)]

from cutegen_nb.evaluator.tools.ncu import METRICS  # noqa: E402
from cutegen_nb.evaluator.tools.ncu_csv import RAW_PAGE, SOURCE_PAGE  # noqa: E402

COUNTED = ("SourceCounters", "LaunchStats", "SpeedOfLight", "Occupancy")
OURS = ("--kernel-name", "regex:cutlass")
RUNS = {
    "large": (*OURS, "--set", "full", "--metrics", ",".join(METRICS)),
    "small": (
        *OURS,
        *(word for one in COUNTED for word in ("--section", one)),
        "--metrics",
        ",".join(METRICS),
    ),
    "others": ("--set", "full", "--launch-count", "12"),
}
"""Options of ncu for each run."""
PROGRAMS = {"large": ["--size", "gpu"], "small": ["--size", "small"], "others": ["others"]}
LIMIT_S = 150
HOME = b"/home/user"
"""Name for the folder above the repository in kept files, cut or filled to its length."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--adopt", type=Path)
    arguments = parser.parse_args()
    if arguments.out:
        record(arguments.out.resolve())
    if arguments.adopt:
        adopt(arguments.adopt)
    return 0


def record(out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name, asked in RUNS.items():
        report = out / f"{name}.ncu-rep"
        program = [
            sys.executable,
            str(HERE / "launch.py"),
            "--order",
            str(out / f"{name}.json"),
            *PROGRAMS[name],
        ]
        options = [
            "--clock-control",
            "none",
            "--import-source",
            "yes",
            "--force-overwrite",
            "--export",
            str(report),
        ]
        began = time.monotonic()
        environment = {**os.environ, "CUTE_DSL_LINEINFO": "1"}
        subprocess.run(["ncu", *asked, *options, *program], check=True, timeout=LIMIT_S, env=environment)
        print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
    for page, words in (("raw", RAW_PAGE), ("source", SOURCE_PAGE)):
        text = subprocess.run(
            ["ncu", "--import", str(out / "large.ncu-rep"), *words],
            check=True,
            timeout=60,
            capture_output=True,
        ).stdout
        (out / f"large_{page}.csv").write_bytes(text)
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = (
        subprocess.run(query, check=True, capture_output=True, text=True).stdout.strip().split(", ")
    )
    version = subprocess.run(["ncu", "--version"], check=True, capture_output=True, text=True).stdout
    number = re.search(r"Version (\S+)", version)[1]
    tool = f"Nsight Compute {number}"
    told = {
        "device": name,
        "driver": driver,
        "tool": tool,
        "date": time.strftime("%Y-%m-%d"),
        "root": str(ROOT),
    }
    (out / "told.json").write_text(json.dumps(told))


def adopt(folder: Path) -> None:
    told = json.loads((folder / "told.json").read_text())
    root = told.pop("root").encode()
    kept = (HOME + b"/" * len(root))[: len(root)]
    for name in ("large_raw.csv", "large_source.csv", "small.ncu-rep", "others.ncu-rep"):
        data = (folder / name).read_bytes()
        if name == "others.ncu-rep":
            data = without_code(data)
        packed = lzma.compress(data.replace(root, kept), preset=9 | lzma.PRESET_EXTREME)
        (DATA / f"{name}.xz").write_bytes(packed)
    orders = {name: json.loads((folder / f"{name}.json").read_text()) for name in RUNS}
    (DATA / "recorded.json").write_text(json.dumps(told | orders, indent=1) + "\n")


def without_code(report: bytes) -> bytes:
    """A report without its blocks of machine code, which belong to the libraries they are from."""
    from cutegen_nb.evaluator.tools.ncu_rep_file import _fields, _number

    (size,) = struct.unpack_from("<I", report, 4)
    at = 8 + size
    kept = report[:at]
    while at < len(report):
        (size,) = struct.unpack_from("<I", report, at)
        header = _fields(report[at + 4 : at + 4 + size])
        end = at + 4 + size + _number(header, 5)
        if not _number(header, 1) or _number(header, 2):
            kept += report[at:end]
        at = end
    return kept


if __name__ == "__main__":
    sys.exit(main())
