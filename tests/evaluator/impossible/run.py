"""Nine kernels that published times were too good for, rebuilt in CuTe DSL: which checks refuse each.

    python tests/evaluator/impossible/run.py [--device cuda|simulator] [--small] [--only 04,23] [--json FILE]

Of 87 published kernel times for KernelBench's first level nine are shorter than the memory system allows.
Each kernel here does what the published one did (index maps of 2025-12: its docstring says what), for the
same operation at the same shapes. It is judged as any candidate is; then once more with the problem's own
comparison of values switched off, so that what else refuses it shows: a time above the roof, outputs never
written, inputs on which it is wrong. The status is 0 where at least two independent checks refuse each.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import itertools
import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import CheckState, Evaluation, Tier
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.ports import Progress
from cutegen_nb.core.problem import Admission, Problem, ProblemFacts, ProblemForm
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.catalog.correctness import POISON
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.problem_study import ProblemCache, ProblemStudy

HERE = Path(__file__).parent
FEWEST = 2
"""Independent checks that have to refuse each kernel."""
OPEN = Tolerance(element=1e30, l2=1e30, reference_l2=0.0)
"""Lets every finite value pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation, at the shapes of the benchmark and at small ones."""

    inputs: str
    """Names of forward's arguments."""
    result: str
    """Expression that forward returns."""
    drawn: str
    """The inputs, with the extents by name."""
    real: dict[str, int]
    """Extents of the benchmark."""
    small: dict[str, int]
    """Extents for a simulator."""
    init: str = ""
    """The constructor's one argument and its value."""

    def problem(self, name: str, *, small: bool) -> Problem:
        """As the evaluator takes it."""
        argument, _, value = self.init.partition("=")
        lines = ["import torch", "", *(f"{k} = {v}" for k, v in (self.small if small else self.real).items())]
        lines += ["", "class Model(torch.nn.Module):"]
        if argument:
            lines += [f"    def __init__(self, {argument}):", "        super().__init__()"]
            lines += [f"        self.{argument} = {argument}", ""]
        lines += [f"    def forward(self, {self.inputs}):", f"        return {self.result}"]
        lines += ["", "def get_inputs():", f"    return [{self.drawn}]"]
        lines += ["", "def get_init_inputs():", f"    return [{value}]", ""]
        return Problem(name=name, source="\n".join(lines), form=ProblemForm.KERNELBENCH)


_PAIR = "torch.rand(M, N) * torch.rand(()), torch.rand(M, N)"
OPERATIONS = {
    "04_matrix_vector": Operation(
        inputs="a, b",
        result="a @ b",
        drawn="torch.rand(M, K), torch.rand(K, 1)",
        real={"M": 2048, "K": 1048576},
        small={"M": 4, "K": 4096},
    ),
    "23_softmax": Operation(
        inputs="x",
        result="torch.softmax(x, dim=1)",
        drawn="torch.rand(M, N)",
        real={"M": 4096, "N": 393216},
        small={"M": 4, "N": 512},
    ),
    "37_frobenius_norm": Operation(
        inputs="x",
        result="x / torch.linalg.vector_norm(x)",
        drawn="torch.rand(B, C, H, W)",
        real={"B": 112, "C": 64, "H": 512, "W": 512},
        small={"B": 2, "C": 1, "H": 224, "W": 224},
    ),
    "39_l2_norm": Operation(
        inputs="x",
        result="x / torch.linalg.vector_norm(x, dim=1, keepdim=True)",
        drawn="torch.rand(M, N)",
        real={"M": 32768, "N": 65535},
        small={"M": 8, "N": 2304},
    ),
    "49_max_reduction": Operation(
        inputs="x",
        result="torch.max(x, dim=self.dim)[0]",
        drawn="torch.rand(B, M, N)",
        real={"B": 128, "M": 4096, "N": 4095},
        small={"B": 2, "M": 64, "N": 95},
        init="dim=1",
    ),
    "53_min_reduction": Operation(
        inputs="x",
        result="torch.min(x, dim=self.dim)[0]",
        drawn="torch.rand(B, M, N)",
        real={"B": 128, "M": 4096, "N": 4095},
        small={"B": 2, "M": 64, "N": 95},
        init="dim=1",
    ),
    "96_huber_loss": Operation(
        inputs="p, t",
        result="torch.nn.functional.smooth_l1_loss(p, t)",
        drawn=_PAIR,
        real={"M": 32768, "N": 32768},
        small={"M": 64, "N": 64},
    ),
    "98_kl_divergence": Operation(
        inputs="p, t",
        result="torch.nn.functional.kl_div(torch.log(p), t, reduction='batchmean')",
        drawn="(torch.rand(M, N) * torch.rand(())).softmax(-1), torch.rand(M, N).softmax(-1)",
        real={"M": 16384, "N": 16384},
        small={"M": 60, "N": 1024},
    ),
    "99_triplet_margin_loss": Operation(
        inputs="a, p, n",
        result="torch.nn.functional.triplet_margin_loss(a, p, n, margin=self.margin)",
        drawn="torch.rand(M, N) * torch.rand(()), torch.rand(M, N), torch.rand(M, N)",
        real={"M": 32768, "N": 8192},
        small={"M": 16, "N": 512},
        init="margin=1.0",
    ),
}


def refusal(found: Evaluation, *, comparison: bool) -> dict | None:
    """Refusal of a kernel: the check that decided, its evidence, and how it was judged; None for PASSED."""
    if found.passed:
        return None
    decisive = next((item for item in found.findings if item.severity is Severity.DECIDES), None)
    message = decisive.message if decisive else found.summary
    check = next(
        (item.name for item in found.checks if item.state is CheckState.FOUND and item.note == message), None
    )
    if not comparison and "never written" in message:
        check = POISON.name  # what is left of the comparison: no value at all is no value
    return {
        "outcome": found.label,
        "check": check or (decisive.kind if decisive else found.label),
        "finding": decisive.kind if decisive else "",
        "evidence": message,
        "comparison_of_values": "on" if comparison else "switched off",
        "tier": found.tier.value,
    }


async def refusals(name: str, evaluators: itertools.cycle, *, small: bool) -> dict:
    """Everything that refuses one kernel, with the time it took where it was timed.

    One evaluation at a time; the evaluators take turns, so that the next one's worker gets ready meanwhile.
    """
    problem = OPERATIONS[name].problem(name, small=small)
    source = (HERE / f"{name}.py").read_text()
    candidate = Candidate(source=source, author="impossible")
    began = time.monotonic()

    async def judged(tier: Tier) -> Evaluation:
        return await next(evaluators).evaluate(problem, candidate, lambda _: None, tier)

    first = next(evaluators)
    known = await first.known(problem, lambda _: None)
    found = [await judged(Tier.A)]
    listed = [refusal(found[0], comparison=True)]
    # Only here: what else refuses a kernel shows where the first that does is out of the way.
    first._cache._known[problem.digest] = replace(known, tolerances=(OPEN,))
    for tier in (Tier.A, Tier.B):
        if len({item["check"] for item in listed if item}) < FEWEST:
            found.append(await judged(tier))
            listed.append(refusal(found[-1], comparison=False))
    timing = next((item.timing for item in found if item.timing), None)
    return {
        "name": name,
        "digest": candidate.digest,
        "does": source.partition('"""')[2].partition('"""')[0],
        "refused_by": sorted({item["check"] for item in listed if item}),
        "refusals": [item for item in listed if item],
        "median_ms": timing.median_ms if timing else None,
        "floor_ms": known.facts.full.least_bytes / timing.bandwidth_bytes_per_s * 1e3 if timing else None,
        "seconds": round(time.monotonic() - began, 1),
    }


class Untried(ProblemStudy):
    """Tries no wrong answers against a problem first: it is these kernels that are tried."""

    async def _admitted(
        self, problem: Problem, facts: ProblemFacts, progress: Progress
    ) -> tuple[Admission, tuple]:
        return Admission(not_tried="nine kernels are about to be"), ()


class Unadmitted(KernelEvaluator):
    """An evaluator that studies a problem so."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._study = Untried(self._workers, self._cache, compiled=self._compiled)


async def trace(evaluators: list[KernelEvaluator], names: list[str], *, small: bool) -> None:
    """Have each problem traced once, all at the same time; the evaluators share what is known."""
    problems = [OPERATIONS[name].problem(name, small=small) for name in names]
    await asyncio.gather(
        *(evaluators[0].facts(problem, lambda _: None) for problem in problems),
        *(evaluator.device() for evaluator in evaluators[1:]),
    )


async def measure(options: argparse.Namespace) -> int:
    """Every kernel that was asked for."""
    cache = ProblemCache()
    evaluators = [
        Unadmitted(device=options.device, seeds=options.seeds, baselines=(), cache=cache)
        for _ in range(options.evaluators)
    ]
    names = [name for name in OPERATIONS if not options.only or name[:2] in options.only.split(",")]
    try:
        device = await evaluators[0].device()
        await trace(evaluators, names, small=options.small)
        turns = itertools.cycle(evaluators)
        found = {
            "device": device.name,
            "driver": device.driver,
            "date": f"{dt.datetime.now(dt.UTC):%Y-%m-%d}",
        }
        found |= {"shapes": "small" if options.small else "real", "kernels": []}
        for name in names:
            row = await refusals(name, turns, small=options.small)
            found["kernels"].append(row)
            took = f"{row['median_ms']:.4g} ms, floor {row['floor_ms']:.4g} ms" if row["median_ms"] else "–"
            told = f"{len(row['refused_by'])} checks: {'; '.join(row['refused_by'])}"
            sys.stdout.write(f"{name:<24} {told} ({took}, {row['seconds']} s)\n")
            sys.stdout.flush()
            if options.json:
                options.json.write_text(json.dumps(found, indent=1) + "\n")
    finally:
        for evaluator in evaluators:
            await evaluator.close()
    return 0 if all(len(row["refused_by"]) >= FEWEST for row in found["kernels"]) else 1


def main() -> int:
    """Read the options and judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda", choices=("cuda", "simulator"))
    parser.add_argument("--small", action="store_true", help="small shapes, for a simulator")
    parser.add_argument("--only", default="", help="numbers, like 04,23")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--evaluators", type=int, default=4, help="whose workers get ready by turns")
    parser.add_argument("--json", type=Path, help="write all of it to this file")
    return asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
