"""Turns what a GPU host recorded into the data that the tests compare with.

    python tests/hardware/adopt.py FOLDER

FOLDER holds what ``record.py`` and ``nsight.py`` wrote there.  Writes ``data/h200.json``, ``data/h200.npz.xz`` and
``data/h200_counters.json``, and names the cases that were not recorded: each has to be explained in ``data/explained.json``.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import re
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from suite import traffic  # noqa: E402

KEPT = re.compile(
    r"(l1tex__[td]\w+_mem_(global|shared)\w*|sm(sp)?__(sass_)?(l1tex|inst_executed)\w*|lts__t_\w+_srcunit_tex_op_\w+)\.sum"
    r"|launch__registers_per_thread"
)
"""Metrics worth keeping: totals of traffic and of instructions. A page names some four hundred more, of the device."""
DATA = HERE / "data"


def main() -> int:
    folder = Path(sys.argv[1])
    record = json.loads((folder / "results.json").read_text())
    DATA.mkdir(exist_ok=True)
    (DATA / "h200.npz.xz").write_bytes(repacked(folder / "results.npz"))
    kept = {"machine": record["machine"], "cases": record["cases"]}
    (DATA / "h200.json").write_text(json.dumps(kept, indent=0) + "\n")
    for name, problem in record["failures"].items():
        print(f"NOT RECORDED {name}: {problem.strip().splitlines()[-1]}")
    counted = folder / "nsight.json"
    if counted.exists():
        kernels = read_counters(json.loads(counted.read_text()))
        names = sorted({metric for values in kernels.values() for metric in values})
        rows = {name: [values.get(metric) for metric in names] for name, values in kernels.items()}
        lines = ",\n".join(
            f"{json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in rows.items()
        )
        machine, listed = json.dumps(record["machine"]), json.dumps(names, indent=0)
        text = f'{{"machine": {machine},\n"metrics": {listed},\n"kernels": {{\n{lines}\n}}}}\n'
        (DATA / "h200_counters.json").write_text(text)
        print(f"{len(kernels)} kernels with counters")
    return 0


def repacked(path: Path) -> bytes:
    """Arrays of an ``.npz``, packed a quarter smaller."""
    with np.load(path) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    plain = io.BytesIO()
    np.savez(plain, **arrays)
    return lzma.compress(plain.getvalue(), preset=9)


def read_counters(record: dict) -> dict[str, dict[str, float]]:
    """Counters by kernel and metric, from the CSV pages of every group."""
    found: dict[str, dict[str, float]] = {}
    for group in record["groups"].values():
        for page in (group["csv"], group.get("more_csv", "")):
            for name, row in _rows(page):
                found.setdefault(name, {}).update(row)
    return dict(sorted(found.items()))


def _rows(page: str) -> list[tuple[str, dict[str, float]]]:
    """Rows of one page; its first line names columns, its second gives units, and other lines are ncu's own words."""
    lines = [line for line in page.splitlines() if line.startswith('"')]
    rows = []
    for row in csv.DictReader(io.StringIO("\n".join(lines))):
        name = pattern_of(row.get("Kernel Name", ""))
        if name:
            values = {
                metric: _number(value) for metric, value in row.items() if metric and KEPT.fullmatch(metric)
            }
            rows.append(
                (
                    name,
                    {
                        metric.removesuffix(".sum"): value
                        for metric, value in values.items()
                        if value is not None
                    },
                )
            )
    return rows


def _number(text: str | None) -> float | None:
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return int(value) if value == int(value) else value


def pattern_of(kernel: str) -> str:
    """The pattern or program that a kernel's name contains; the longest where one name ends another."""
    for program in ("relu", "softmax", "product"):
        if f"{program}_kernel" in kernel:
            return program
    if "traffic_kernel" not in kernel:
        return ""
    known = (pattern.name for pattern in traffic.patterns())
    return max((name for name in known if f"_{name}_" in f"{kernel}_"), key=len, default="")


if __name__ == "__main__":
    sys.exit(main())
