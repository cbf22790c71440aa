"""Every kernel of the offline author's ladders, run and timed on a GPU without the judge.

    python benchmarks/rungs.py FOLDER [--only 19,23-26] [--ends] [--seconds S] [-o OUT.json]
    python benchmarks/rungs.py table RESULT.json

FOLDER holds KernelBench's files. Each kernel is compared once with PyTorch (relative L2 error, and the
largest error over the root mean square) and timed by CUDA events with a flushed L2 cache, beside eager
PyTorch. It is for work on templates: a run takes a second or two, an evaluation takes several. Each problem
has a process of its own, so that a fault or a hang ends one problem.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.app.campaign_setup import campaign_problems
from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.problem import Problem, ProblemFacts
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.evaluator.evaluator import KernelEvaluator

FLUSH_BYTES = 256 << 20
"""Bytes that are overwritten before each timed call: more than any L2 cache holds."""
MOST_CALLS = 15
LARGEST_MS = 300.0
"""Time of a timed call from which one call is enough."""


def problems(folder: Path, only: str) -> list[tuple[str, Problem]]:
    """Return the chosen files' names and problems, as `cutegen-nb campaign` reads them."""
    found, _ = campaign_problems([str(folder)], only or None, ())
    return [(Path(item.file).stem, item.problem) for item in found if item.problem]


def fits(strategy: Strategy, dtype: str) -> bool:
    """Return whether a strategy is for this GPU's architecture and the problem's dtype."""
    major, minor = torch.cuda.get_device_capability()
    here = not strategy.architectures or f"sm_{major}{minor}" in strategy.architectures
    return here and (not strategy.dtypes or dtype in strategy.dtypes)


def last_kernel(problem: Problem, facts: ProblemFacts) -> str:
    """Source of the last kernel of a problem's ladder for this GPU."""
    author = OfflineAuthor()
    writer = next(item for item in author._writers if item.accepts(facts))  # noqa: SLF001
    names = [item.name for item in author.menu(facts) if fits(item, facts.dtype)]
    return writer.write(problem, facts, tuple(names)).source


def loaded(source: str, name: str, folder: Path) -> Any:
    """Import a source as a module of its own, from a file, as the DSL needs it."""
    path = folder / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def timed_ms(call: Callable[[], Any]) -> float:
    """Median of several calls in milliseconds, L2 flushed before each."""
    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    found: list[float] = []
    while len(found) < MOST_CALLS and not (found and found[-1] > LARGEST_MS):
        flush.zero_()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end))
    return statistics.median(found)


def distance(found: Any, expected: Any) -> tuple[float, float]:
    """Relative L2 error, and largest error over the root mean square, of the first output."""
    one, two = (item[0] if isinstance(item, tuple) else item for item in (found, expected))
    if one.shape != two.shape or one.dtype != two.dtype:
        forms = [(item.dtype, tuple(item.shape)) for item in (one, two)]
        raise ValueError(f"{forms[0]} instead of {forms[1]}")
    squares = norm = largest = 0.0
    for left, right in zip(one.reshape(-1).split(1 << 26), two.reshape(-1).split(1 << 26), strict=True):
        difference = (left.double() - right.double()).abs()
        squares += float(difference.square().sum())
        norm += float(right.double().square().sum())
        largest = max(largest, float(difference.max()))
    scale = (norm / max(one.numel(), 1)) ** 0.5
    return (squares / norm) ** 0.5 if norm else squares, largest / scale if scale else largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One problem on the GPU: its module, its reference's inputs, output and time."""

    reference: Any
    arguments: list[Any]
    model: Any
    expected: Any
    eager_ms: float
    folder: Path


def rungs(problem: Problem, facts: ProblemFacts, folder: Path, *, ends: bool) -> Iterator[dict[str, Any]]:
    """Run eager PyTorch and each rung on the problem's full size; with `ends` the first and the last one."""
    reference = loaded(problem.source, f"problem_{problem.name}", folder)
    torch.manual_seed(1)
    arguments = [item.cuda() if isinstance(item, torch.Tensor) else item for item in _drawn(reference)]
    torch.manual_seed(2)
    model = reference.Model(*reference.get_init_inputs()).cuda()
    with torch.no_grad():
        setting = Setting(
            reference=reference,
            arguments=arguments,
            model=model,
            expected=model(*arguments),
            eager_ms=timed_ms(lambda: model(*arguments)),
            folder=folder,
        )
        yield {"rung": "eager", "ms": setting.eager_ms}
        author = OfflineAuthor()
        writer = next(item for item in author._writers if item.accepts(facts))  # noqa: SLF001
        names = [item.name for item in author.menu(facts) if fits(item, facts.dtype)]
        for count in range(len(names) + 1):
            if ends and 0 < count < len(names):
                continue
            source = writer.write(problem, facts, tuple(names[:count])).source
            yield _rung(source, names[count - 1] if count else "", setting)


def _drawn(reference: Any) -> list[Any]:
    with torch.device("cuda"):
        return list(reference.get_inputs())


def _rung(source: str, name: str, setting: Setting) -> dict[str, Any]:
    began = time.monotonic()
    result: dict[str, Any] = {"rung": name or "first kernel"}
    try:
        module = loaded(source, f"kernel_{abs(hash(source))}", setting.folder)
        torch.manual_seed(2)
        kernel = module.ModelNew(*setting.reference.get_init_inputs()).cuda()
        kernel.load_state_dict(setting.model.state_dict(), strict=False)
        found = kernel(*setting.arguments)
        torch.cuda.synchronize()
        result["first_call_s"] = round(time.monotonic() - began, 2)
        result["l2"], result["largest"] = distance(found, setting.expected)
        del found
        result["ms"] = timed_ms(lambda: kernel(*setting.arguments))
        result["speedup"] = setting.eager_ms / result["ms"]
    except Exception as error:  # noqa: BLE001 - the next rung runs all the same
        result["error"] = f"{type(error).__name__}: {str(error)[:400]}"
        result["trace"] = traceback.format_exc()[-1200:]
    return result


def ladder(stem: str, problem: Problem, facts: ProblemFacts, output: Path, *, ends: bool) -> None:
    """Run one problem's ladder in a process of its own; write the rows to `output` as they come."""
    torch.backends.cudnn.allow_tf32 = False
    rows: list[dict[str, Any]] = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for row in rungs(problem, facts, Path(folder), ends=ends):
                rows.append(row)
                output.write_text(json.dumps(rows))
                _tell(stem, row)
    except Exception as error:  # noqa: BLE001 - one problem's fault
        print(f"{stem[:34]:34} failed: {type(error).__name__}: {str(error)[:300]}", flush=True)


async def facts_of(chosen: list[tuple[str, Problem]]) -> dict[str, ProblemFacts]:
    """Trace the problems on the CPU; those that the offline author declines are named and left out."""
    evaluator, author, found = KernelEvaluator(device="simulator"), OfflineAuthor(), {}
    for stem, problem in chosen:
        try:
            facts = await evaluator.facts(problem, lambda _: None)
            author.menu(facts)
            found[stem] = facts
        except CutegenError as error:
            print(f"{stem[:34]:34} declined: {error}", flush=True)
    await evaluator.close()
    return found


def run_apart(
    stem: str, problem: Problem, facts: ProblemFacts, most_s: float, *, ends: bool
) -> list[dict[str, Any]]:
    """Run a ladder in a fork, for at most so many seconds; CUDA starts there, what is imported is shared."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.json"
        rows.write_text("[]")
        child = multiprocessing.get_context("fork").Process(
            target=ladder, args=(stem, problem, facts, rows), kwargs={"ends": ends}
        )
        child.start()
        child.join(most_s)
        if child.is_alive():
            print(f"{stem[:34]:34} stopped after {most_s:.0f} s", flush=True)
            child.kill()
            child.join()
        return list(json.loads(rows.read_text()))


def table(path: Path) -> str:
    """Return the recorded ladders in Markdown: a row a problem, then the geometric mean."""
    kept = json.loads(path.read_text())
    lines = [
        f"{kept['device']}, driver {kept['driver']}, torch {kept['versions']['torch']}, {kept['date']}.",
        "",
    ]
    lines += ["| problem | eager ms | first kernel ms | best kernel | ms | × eager | relative L2 error |"]
    lines += ["|---|---|---|---|---|---|---|"]
    ratios: dict[str, list[float]] = {}
    for stem, rows in sorted(kept["results"].items(), key=lambda item: _place(item[0])):
        timed = [row for row in rows[1:] if "ms" in row]
        if not timed:
            continue
        best = min(timed, key=lambda row: row["ms"])
        ratios.setdefault(stem.partition("/")[0], []).append(best["speedup"])
        lines.append(
            f"| {stem} | {rows[0]['ms']:.3g} | {timed[0]['ms']:.3g} | {best['rung']} | {best['ms']:.3g} | "
            f"{best['speedup']:.2f} | {best['l2']:.1e} |"
        )
    for level, found in ratios.items():
        mean = statistics.geometric_mean(found)
        lines += ["", f"{level}: {len(found)} problems, geometric mean {mean:.2f} × eager."]
    return "\n".join(lines)


def _place(stem: str) -> tuple[str, int]:
    level, _, name = stem.rpartition("/")
    return level, int(name.partition("_")[0])


def main() -> None:
    """Run all problems of the folder, print a line a rung."""
    if sys.argv[1:2] == ["table"]:
        print(table(Path(sys.argv[2])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="numbers: 19,23-26")
    parser.add_argument(
        "--ends", action="store_true", help="the first and the last kernel of each ladder only"
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="start no problem after so many")
    parser.add_argument("--each", type=float, default=60.0, help="most seconds of a problem")
    parser.add_argument("-o", "--output", type=Path)
    order = parser.parse_args()
    began, results = time.monotonic(), {}
    chosen = problems(order.folder, order.only)
    facts = asyncio.run(facts_of(chosen))
    for stem, problem in chosen:
        if time.monotonic() - began > order.seconds:
            print(f"time is up before {stem}")
            break
        if stem in facts:
            results[f"{order.folder.name}/{stem}"] = run_apart(
                stem, problem, facts[stem], order.each, ends=order.ends
            )
            if order.output:
                order.output.write_text(json.dumps(_record(results), indent=1))


def _record(results: dict[str, Any]) -> dict[str, Any]:
    """Results with device, driver, versions and date; without CUDA, which runs in the forks alone."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    device, driver = subprocess.run(query, check=True, capture_output=True, text=True).stdout.split(", ")
    return {
        "device": device,
        "driver": driver.split()[0],
        "date": datetime.now(tz=UTC).date().isoformat(),
        "versions": {name: metadata.version(name) for name in ("torch", "nvidia-cutlass-dsl")},
        "command": " ".join(["benchmarks/rungs.py", *sys.argv[1:]]),
        "results": results,
    }


def _tell(stem: str, row: dict[str, Any]) -> None:
    if "error" in row:
        print(f"{stem[:34]:34} {row['rung']:26} {row['error'][:300]}", flush=True)
        print(row["trace"], file=sys.stderr)
        return
    text = f"{stem[:34]:34} {row['rung']:26} {row['ms']:10.4f} ms"
    if "l2" in row:
        text += f"  {row['speedup']:7.2f}x  L2 {row['l2']:.1e}  max {row['largest']:.1e}"
        text += f"  first call {row['first_call_s']} s"
    print(text, flush=True)


if __name__ == "__main__":
    main()
