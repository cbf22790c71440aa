"""Problems of a KernelBench folder through `cutegen-nb run`, one line each.

    python benchmarks/kernelbench.py FOLDER [IDS] [--device auto|cuda|simulator] [--rounds K] [--json FILE]

FOLDER holds KernelBench's files (``19_ReLU.py`` …), unmodified; IDS is like ``19-32,23,1`` (default: all).
On the simulator each line shows the sectors and warp instructions of the first and of the best revision;
on a GPU its latency, share of the roof, and speedup against each baseline of the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent


def wanted(text: str) -> set[int]:
    """The numbers of a list like ``19-32,23``."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def problems(folder: Path, ids: str | None) -> list[tuple[int, Path]]:
    """Number and file of each problem asked for, in order of number."""
    found = [(int(m[1]), p) for p in folder.glob("*.py") if (m := re.match(r"(\d+)_", p.name))]
    keep = wanted(ids) if ids else {number for number, _ in found}
    return sorted(item for item in found if item[0] in keep)


def run(path: Path, options: argparse.Namespace, store: str) -> dict:
    """What `cutegen-nb run --json` printed, with the wall time and the exit status."""
    command = [sys.executable, "-m", "cutegen_nb", "run", str(path), "--json", "--store", store]
    command += ["--device", options.device, "--rounds", str(options.rounds)]
    for baseline in options.baseline or ():
        command += ["--baseline", baseline]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    start = time.monotonic()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": f"took more than {options.timeout} s", "wall_s": time.monotonic() - start}
    answer = json.loads(done.stdout) if done.stdout.strip() else {"error": done.stderr.strip()[-300:]}
    return {**answer, "status": done.returncode, "wall_s": time.monotonic() - start}


def line(answer: dict) -> str:
    """One problem in one line."""
    if "error" in answer:
        return f"declined or failed: {answer['error'].splitlines()[-1]}"
    verdicts = " ".join(r["verdict"] for r in answer["rounds"] if r["verdict"] != "PASSED")
    best = answer["best"]
    if best is None:
        reason = answer["rounds"][-1]["reason"] if answer["rounds"] else answer["stopped"]
        return f"NOTHING PASSED: {reason} {verdicts}"
    tail = f"{len(answer['rounds'])} rounds, best {best['revision']} ({best['strategy']}) {verdicts}"
    if best["timing"]:
        sol = best["sol_fraction"]
        against = ", ".join(f"{b['speedup']:.2f}x {b['name']}" for b in best["timing"]["baselines"])
        return f"PASSED {best['timing']['median_ms']:9.4f} ms, roof share {sol:.2f}, {against}; {tail}"
    first = next(r for r in answer["rounds"] if r["counters"] and r["verdict"] == "PASSED")
    ratios = ", ".join(
        f"{label} {first['counters'][key]:,} → {best['counters'][key]:,}"
        for label, key in (("sectors", "gmem_sectors"), ("warp instructions", "warp_instructions"))
    )
    return f"PASSED {ratios}; {tail}"


def main() -> None:
    """Run each problem and print its line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("ids", nargs="?")
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "simulator"))
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--baseline", action="append", choices=("eager", "torch.compile"))
    parser.add_argument("--timeout", type=float, default=300)
    parser.add_argument("--json", type=Path, help="write every answer to this file")
    options = parser.parse_args()
    answers = {}
    with tempfile.TemporaryDirectory() as store:
        for number, path in problems(options.folder, options.ids):
            answer = answers[path.stem] = run(path, options, store)
            name = path.stem.partition("_")[2][:34]
            print(f"{number:>3} {name:<34} {answer['wall_s']:5.1f} s  {line(answer)}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(answers, indent=1))
    passed = sum(a.get("best") is not None for a in answers.values())
    print(f"{passed} of {len(answers)} passed")


if __name__ == "__main__":
    main()
