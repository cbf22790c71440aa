"""Does the comparison of two kernels tell apart what differs, and only that? A/A and 3 % slower, on a GPU.

    python benchmarks/timing_protocol.py [--times 20] [--cases small,large,product,slower] [--json FILE]

Each line is one case: so many times a candidate is evaluated beside the best before it and compared as a
session does it. In A/A both are the same kernel, and each "faster" or "slower" is a mistake. In `slower` the
candidate is the same kernel with 3 % more elements to do, in a problem of 2 GiB of traffic, and each answer
other than "slower" is one. The right-hand figures are what the same evaluations would have said of two
separate runs, each against PyTorch. Needs a GPU: elsewhere it says so and ends with status 2.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import statistics
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from cutegen_nb.analysis.history.compare import compare
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.evaluator.evaluator import KernelEvaluator

RELU = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand({rows}, {columns}) - 0.5]

def get_init_inputs():
    return []
"""
PRODUCT = """
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.rand(1024, 512).half(), torch.rand(512, 1024).half()]

def get_init_inputs():
    return []
"""
RELU_KERNEL = """
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

THREADS = 256
VECTOR = 4
COMPILED = {}


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, work: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * THREADS + thread
    if i < work:
        j = i
        if i >= count:  # what comes on top is done again from the front
            j = i - count
        values = x[(None, j)].load()
        y[(None, j)].store(cute.where(values > 0.0, values, cute.full_like(values, 0.0)))


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor, count: cutlass.Int32, work: cutlass.Int32):
    relu_kernel(
        cute.zipped_divide(x, (VECTOR,)), cute.zipped_divide(y, (VECTOR,)), count, work
    ).launch(grid=(cute.ceil_div(work, THREADS), 1, 1), block=(THREADS, 1, 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        given = [from_dlpack(t.reshape(-1), assumed_align=16) for t in (x, y)]
        count = x.numel() // VECTOR
        work = int(count * WORK)
        if x.shape not in COMPILED:
            COMPILED[x.shape] = cute.compile(relu, *given, count, work)
        COMPILED[x.shape](*given, count, work)
        return y


WORK = {work}
"""
PRODUCT_KERNEL = """
import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

TILE = 16
COMPILED = {}


@cute.kernel
def product_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    column, row, _ = cute.arch.thread_idx()
    right, down, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    left = smem.allocate_tensor(cutlass.Float16, cute.make_layout((TILE, TILE), stride=(TILE, 1)))
    upper = smem.allocate_tensor(cutlass.Float16, cute.make_layout((TILE, TILE), stride=(TILE, 1)))
    total = cutlass.Float32(0.0)
    for step in cutlass.range(a.shape[1] // TILE):
        left[row, column] = a[down * TILE + row, step * TILE + column]
        upper[row, column] = b[step * TILE + row, right * TILE + column]
        cute.arch.sync_threads()
        for k in cutlass.range_constexpr(TILE):
            total += left[row, k].to(cutlass.Float32) * upper[k, column].to(cutlass.Float32)
        cute.arch.sync_threads()
    c[down * TILE + row, right * TILE + column] = total.to(cutlass.Float16)


@cute.jit
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    product_kernel(a, b, c).launch(
        grid=(c.shape[1] // TILE, c.shape[0] // TILE, 1), block=(TILE, TILE, 1)
    )


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device)
        given = [from_dlpack(t, assumed_align=16) for t in (a, b, c)]
        if a.shape not in COMPILED:
            COMPILED[a.shape] = cute.compile(product, *given)
        COMPILED[a.shape](*given)
        return c
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A best kernel and a candidate to hold against it."""

    problem: str
    """The problem's source."""
    best: str
    """The best kernel so far."""
    candidate: str
    """The candidate."""
    right: tuple[Relation, ...]
    """Permitted answers."""


def cases() -> dict[str, Case]:
    """By name."""
    small, large = RELU.format(rows=64, columns=1024), RELU.format(rows=4096, columns=65536)
    same, more = (RELU_KERNEL.replace("{work}", text) for text in ("1.0", "1.03"))
    neither = (Relation.CANNOT_TELL,)
    return {
        "small": Case(problem=small, best=same, candidate=same, right=neither),
        "large": Case(problem=large, best=same, candidate=same, right=neither),
        "product": Case(problem=PRODUCT, best=PRODUCT_KERNEL, candidate=PRODUCT_KERNEL, right=neither),
        "slower": Case(problem=large, best=same, candidate=more, right=(Relation.SLOWER,)),
    }


async def run(case: Case, evaluators: list[KernelEvaluator], times: int, until: float) -> dict:
    """Evaluate the best once, then the candidate beside it so many times; what each comparison said.

    One evaluation at a time; the evaluators take turns, so that the next one's worker gets ready meanwhile.
    """
    evaluator = evaluators[0]
    problem = Problem(name="timing", source=case.problem, form=ProblemForm.KERNELBENCH)
    best = Candidate(source=case.best, author="benchmark")
    facts = await evaluator.facts(problem, lambda _: None)
    parent = await evaluator.evaluate(problem, best, lambda _: None)
    if not parent.passed:
        return {"error": f"the kernel itself: {parent.label}: {parent.summary}"}
    rows = []
    for number in range(times):
        if time.monotonic() > until:
            break
        candidate = Candidate(source=f"{case.candidate}\n# {number}\n", author="benchmark")
        began, judge = time.monotonic(), evaluators[number % len(evaluators)]
        found = await judge.evaluate(problem, candidate, lambda _: None, rival=best)
        if not found.passed or found.timing is None:
            return {"error": f"{found.label}: {found.summary}", "rows": rows}
        apart = replace(found, timing=replace(found.timing, rival=None, rival_digest=""))
        rows.append(
            {
                "relation": compare(parent, found, facts).relation.value,
                "apart": compare(parent, apart, facts).relation.value,
                **_figures(found),
                "seconds": round(time.monotonic() - began, 2),
            }
        )
    return {"right": [item.value for item in case.right], "rows": rows}


def _figures(found: Evaluation) -> dict:
    timing = found.timing
    assert timing is not None
    flags = [item.kind for item in found.findings]
    return {
        "rival": asdict(timing.rival) if timing.rival else None,
        "median_ms": timing.median_ms,
        "host_ms": timing.host_ms,
        "warm_ms": timing.warm_ms,
        "method": timing.method,
        "not_by_graph": timing.not_by_graph,
        "noise_fraction": timing.noise_fraction,
        "samples": len(timing.samples_ms),
        "flags": flags,
    }


def line(name: str, answer: dict) -> str:
    """One case for a person."""
    if "error" in answer:
        return f"{name:<8} {answer['error']}"
    rows = answer["rows"]
    if not rows:
        return f"{name:<8} no time was left for it"
    said, apart = (Counter(item[key] for item in rows) for key in ("relation", "apart"))
    right = sum(said[word] for word in answer["right"])
    medians = statistics.median(item["median_ms"] for item in rows)
    ratios = [item["rival"]["speedup"] for item in rows if item["rival"]]
    spread = f"{min(ratios):.4f} to {max(ratios):.4f}" if ratios else "none"
    return (
        f"{name:<8} {right} of {len(rows)} right: {dict(said)}; best ÷ candidate {spread}; "
        f"{medians * 1e3:.2f} µs by {rows[0]['method']}; from two runs: {dict(apart)}"
    )


async def _share_facts(evaluators: list[KernelEvaluator], wanted: list[Case]) -> None:
    """Have each problem traced once, all at the same time, and every evaluator know of it."""
    first = evaluators[0]
    sources = {case.problem for case in wanted}
    problems = [Problem(name="timing", source=text, form=ProblemForm.KERNELBENCH) for text in sources]
    await asyncio.gather(
        *(first.facts(problem, lambda _: None) for problem in problems),
        *(evaluator.device() for evaluator in evaluators[1:]),
    )
    for other in evaluators[1:]:
        for name in ("_facts", "_gates", "_noise"):  # what one evaluator knows of a problem, any may
            setattr(other, name, getattr(first, name))


async def measure(options: argparse.Namespace) -> int:
    """Every case that was asked for; 0 where each was right throughout."""
    evaluators = [KernelEvaluator(device=options.device) for _ in range(options.evaluators)]
    until = time.monotonic() + options.longest
    try:
        device = await evaluators[0].device()
        if device.kind is not DeviceKind.GPU:
            print(
                "timing_protocol: a comparison of times needs a GPU, and there is none here", file=sys.stderr
            )
            return 2
        found = {
            "device": device.name,
            "driver": device.driver,
            "date": f"{dt.datetime.now(dt.UTC):%Y-%m-%d}",
        }
        found["cases"] = {}
        wanted = cases()
        await _share_facts(evaluators, [wanted[name] for name in options.cases.split(",")])
        for name in options.cases.split(","):
            answer = found["cases"][name] = await run(wanted[name], evaluators, options.times, until)
            print(line(name, answer), flush=True)
            if options.json:
                options.json.write_text(json.dumps(found, indent=1))
    except DeviceUnavailable as error:
        print(f"timing_protocol: {error}", file=sys.stderr)
        return 2
    finally:
        for evaluator in evaluators:
            await evaluator.close()
    answers = found["cases"].values()
    good = all(
        "error" not in a and a["rows"] and all(r["relation"] in a["right"] for r in a["rows"])
        for a in answers
    )
    return 0 if good else 1


def main() -> int:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--cases", default="small,large,product,slower")
    parser.add_argument("--device", default="auto", choices=("auto", "cuda", "simulator"))
    parser.add_argument("--longest", type=float, default=600.0, help="seconds after which no more begin")
    parser.add_argument("--evaluators", type=int, default=4, help="whose workers get ready by turns")
    parser.add_argument("--json", type=Path, help="write every figure to this file")
    return asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
