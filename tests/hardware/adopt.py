"""Turns what a GPU host recorded into the data that the tests compare with.

    python tests/hardware/adopt.py FOLDER

FOLDER holds what ``record.py`` and ``nsight.py`` wrote there.  Writes ``data/h200.json``, ``data/h200.npz`` and
``data/h200_counters.json``, and names the cases that were not recorded: each has to be explained in ``data/explained.json``.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from suite import traffic  # noqa: E402

DATA = HERE / "data"


def main() -> int:
    folder = Path(sys.argv[1])
    record = json.loads((folder / "results.json").read_text())
    DATA.mkdir(exist_ok=True)
    shutil.copyfile(folder / "results.npz", DATA / "h200.npz")
    kept = {"machine": record["machine"], "cases": record["cases"]}
    (DATA / "h200.json").write_text(json.dumps(kept, indent=0) + "\n")
    for name, problem in record["failures"].items():
        print(f"NOT RECORDED {name}: {problem.strip().splitlines()[-1]}")
    counted = folder / "nsight.json"
    if counted.exists():
        kernels = read_counters(json.loads(counted.read_text()))
        text = json.dumps({"machine": record["machine"], "kernels": kernels}, indent=0)
        (DATA / "h200_counters.json").write_text(text + "\n")
        print(f"{len(kernels)} kernels with counters")
    return 0


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
            values = {metric: _number(value) for metric, value in row.items() if metric and "__" in metric}
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
