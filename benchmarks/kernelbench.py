"""KernelBench's problems by the offline author on a GPU, against eager PyTorch and torch.compile.

    python benchmarks/kernelbench.py run OUT.json FOLDER [--only 19,23-26] [--rounds 5] [--minutes M]
    python benchmarks/kernelbench.py table RESULT.json [RESULT.json ...]

`run` gives FOLDER's files, unmodified, to ``cutegen-nb campaign`` and writes what came of each, with device,
driver, versions and date. A file that is there already is extended: what it has is not run again. `table`
prints one row a problem in Markdown, then the statistics.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.app.campaign_setup import campaign_problems

ROOT = Path(__file__).parent.parent
DIAGONAL = "level1/12_"
"""Beginning of the diagonal problem's label: its reference is outdated, so that it is in no mean."""


def run(order: argparse.Namespace) -> None:
    """Run the problems that `order.output` does not hold yet, and write all of them."""
    kept = json.loads(order.output.read_text()) if order.output.exists() else {"problems": {}}
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "cutegen_nb", "campaign", *map(str, _missing(order, kept)), "--json"]
        words += [
            "--device",
            "cuda",
            "--rounds",
            str(order.rounds),
            "--store",
            str(order.store.resolve() if order.store else folder),
        ]
        words += ["--name", "kernelbench"]
        answer = json.loads(_printed(words, order.minutes))
    if "problems" not in answer:
        sys.exit(f"the campaign did not run to its end: {answer}")
    kept |= {
        "device": answer["settings"]["--device"],
        "driver": _driver(),
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": answer["environment"],
        "command": f"cutegen-nb campaign KernelBench --author offline --rounds {order.rounds}",
    }
    for item in answer["problems"]:
        if item["state"] not in {"waiting", "unfinished"}:
            kept["problems"][_label(Path(item["file"]))] = {
                key: value for key, value in item.items() if key not in {"file", "session", "estimate"}
            }
    order.output.write_text(json.dumps(kept, indent=1))
    print(table([kept]))


def _printed(words: list[str], minutes: float) -> str:
    """Run a campaign and return what it printed; of an interrupted one, what its finished problems print."""
    limit = ["--total-minutes", str(minutes)] if minutes else []
    with subprocess.Popen([*words, *limit], stdout=subprocess.PIPE, text=True, cwd=ROOT) as campaign:
        try:
            return campaign.communicate()[0]
        except KeyboardInterrupt:
            campaign.send_signal(signal.SIGINT)
            campaign.wait()
    # The same campaign with its time spent begins no problem and reports on those that are over.
    done = subprocess.run(
        [*words, "--total-minutes", "0.001"], check=False, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    return done.stdout


def _missing(order: argparse.Namespace, kept: dict[str, Any]) -> list[Path]:
    found, _ = campaign_problems([str(order.folder.resolve())], order.only or None, ())
    left = [Path(item.file) for item in found if _label(Path(item.file)) not in kept["problems"]]
    if not left:
        sys.exit(f"{order.output} holds all of them")
    return left


def _label(path: Path) -> str:
    """Folder and name of a problem's file: ``level1/23_Softmax``."""
    return f"{path.parent.name}/{path.stem}"


def _driver() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return subprocess.run(query, check=True, capture_output=True, text=True).stdout.split()[0]


def table(results: Iterable[dict[str, Any]]) -> str:
    """Return the rows of all results in Markdown, and statistics of the last run of each problem."""
    lines: list[str] = []
    every: dict[str, dict[str, Any]] = {}
    for result in results:
        lines += [f"{result['device']}, driver {result['driver']}, {result['date']}: {result['command']}", ""]
        lines += ["| problem | outcome | rounds | ms | share of the roof | × eager | × torch.compile | s |"]
        lines += ["|---|---|---|---|---|---|---|---|"]
        problems = sorted(result["problems"].items(), key=lambda item: _place(item[0]))
        lines += [_row(stem, item) for stem, item in problems]
        every |= problems
    return "\n".join([*lines, "", *_statistics([*every.items()])])


def _read(path: Path) -> dict[str, Any]:
    """Read a result that `run` wrote; end with a sentence for a file of another benchmark."""
    result = json.loads(path.read_text())
    if "problems" not in result:
        sys.exit(f"{path} has no problems: only files that `kernelbench.py run` wrote can be shown")
    return dict(result)


def _place(stem: str) -> tuple[str, int, str]:
    """Key that sorts problems: folder, number where the name begins with one, name."""
    level, _, name = stem.rpartition("/")
    number = name.partition("_")[0]
    return level, int(number) if number.isdecimal() else 0, name


def _row(stem: str, item: dict[str, Any]) -> str:
    speed = _speedups(item)
    figures = [
        item.get("latency_ms"),
        item.get("sol_fraction"),
        speed.get("eager"),
        speed.get("torch.compile"),
    ]
    shown = [f"{value:.3g}" if value is not None else "–" for value in figures]
    outcome = item["verdict"] if item.get("correct") else f"{item['state']}: {item['reason']}"
    return f"| {stem} | {outcome} | {item['rounds']} | {' | '.join(shown)} | {item['seconds']:.0f} |"


def _speedups(item: dict[str, Any]) -> dict[str, float]:
    return {one["name"]: one["speedup"] for one in item.get("baselines") or ()}


def _statistics(problems: list[tuple[str, dict[str, Any]]]) -> list[str]:
    right = [item for stem, item in problems if item.get("correct")]
    lines = [f"{len(right)} of {len(problems)} problems ended with a right kernel."]
    for name in ("eager", "torch.compile"):
        ratios = [
            _speedups(item)[name]
            for stem, item in problems
            if item.get("correct") and name in _speedups(item) and not stem.startswith(DIAGONAL)
        ]
        if ratios:
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            lines.append(
                f"× {name}: geometric mean {mean:.2f}, median {statistics.median(ratios):.2f}, above 1.00 in "
                f"{sum(one > 1 for one in ratios)} and above 1.05 in {sum(one > 1.05 for one in ratios)} of "
                f"{len(ratios)} (without the diagonal product)."
            )
    shares = [item["sol_fraction"] for item in right if item.get("sol_fraction")]
    if shares:
        mean = math.exp(statistics.fmean(map(math.log, shares)))
        lines.append(f"Share of the roof: geometric mean {mean:.2f}, least {min(shares):.2f}.")
    if problems:
        seconds = statistics.median(item["seconds"] for _, item in problems)
        lines.append(f"Seconds a problem: median {seconds:.0f}.")
    return lines


def main() -> None:
    """Run or print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("output", type=Path)
    one.add_argument("folder", type=Path)
    one.add_argument("--only", default="", help="numbers: 19,23-26")
    one.add_argument("--rounds", type=int, default=5)
    one.add_argument("--minutes", type=float, default=0.0, help="end after the round that reaches so many")
    one.add_argument("--store", type=Path, help="keep the sessions here")
    one.set_defaults(work=run)
    other = commands.add_parser("table")
    other.add_argument("results", type=Path, nargs="+")
    other.set_defaults(work=lambda order: print(table(map(_read, order.results))))
    order = parser.parse_args()
    order.work(order)


if __name__ == "__main__":
    main()
