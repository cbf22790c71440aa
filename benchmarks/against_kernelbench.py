"""The same kernel through KernelBench's own evaluator (backend ``cute``) and through ours, in one run.

    python benchmarks/against_kernelbench.py --kernelbench CHECKOUT [--cases right,wrong,copy] [--json F]

CHECKOUT is a copy of https://github.com/ScalingIntelligence/KernelBench, of which ``src/`` is used as it is,
with the settings of its own scripts: 5 correctness trials, 100 timed ones, CUDA events, the reference timed
too. Ours is tier A with eager as baseline. Each side is a Python process of its own, timed from its start to
its verdict: imports, CUDA's start and the compilation are in both; ours also traces the problem and tries
wrong answers against the comparison, once a problem, and ``again`` is a second verdict of the same evaluator,
as in a session. What is measured once a device (bandwidth and peaks) stands apart. Ratios: ours ÷ theirs.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).parent
ROOT = HERE.parent
RELU = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


batch_size = 4096
dim = 393216


def get_inputs():
    return [torch.rand(batch_size, dim)]


def get_init_inputs():
    return []
"""
"""KernelBench's level 1, problem 19, where no file is given: the same sizes and inputs."""
KERNEL = """
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

THREADS = 256
VECTOR = 4


@cute.kernel
def relu_kernel(mX: cute.Tensor, mY: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    gX, gY = cute.zipped_divide(mX, (VECTOR,)), cute.zipped_divide(mY, (VECTOR,))
    vector = (None, bidx * THREADS + tidx)
    x = gX[vector].load()
    gY[vector].store(ANSWER)


@cute.jit
def relu(mX: cute.Tensor, mY: cute.Tensor):
    relu_kernel(mX, mY).launch(grid=(cute.size(mX) // (THREADS * VECTOR), 1, 1), block=(THREADS, 1, 1))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.compiled = {}

    def forward(self, x):
        y = torch.empty_like(x)
        flat = [from_dlpack(t.view(-1), assumed_align=16) for t in (x, y)]
        if x.numel() not in self.compiled:
            self.compiled[x.numel()] = cute.compile(relu, *flat)
        self.compiled[x.numel()](*flat)
        return y
"""
CASES = {
    "right": "cute.where(x > 0.0, x, cute.full_like(x, 0.0))",
    "wrong": "x * 0.5",
    "copy": "x",
}
"""Value that a thread stores. ``copy`` is no ReLU, and equals one on the problem's own inputs, [0, 1)."""
SIDES = {"ours": "ours", "kernelbench": "KernelBench"}
"""Printed names."""
_ANSWER = "the answer: "
"""Before what a side's process says; evaluations print as well."""
_UNNEEDED = {
    "dotenv": ("load_dotenv",),
    "litellm": ("completion",),
    "openai": ("OpenAI",),
    "requests": (),
    "tqdm": ("tqdm",),
}
"""Imported with KernelBench's modules and used by no part of its evaluation, with what is taken from each."""


def stand_in() -> list[str]:
    """Put an empty module in the place of each missing one that evaluating does not use; their names."""
    missing = []
    for name, attributes in _UNNEEDED.items():
        try:
            importlib.import_module(name)
        except ImportError:
            module = ModuleType(name)
            for attribute in attributes:
                setattr(module, attribute, lambda *_, **__: None)
            sys.modules[name] = module
            missing.append(name)
    return missing


def theirs(checkout: Path, problem: str, kernel: str) -> dict:
    """KernelBench's evaluation, in this process."""
    import torch

    sys.path.insert(0, str(checkout / "src"))
    missing = stand_in()
    from kernelbench.eval import eval_kernel_against_ref

    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    started = time.monotonic()
    result = eval_kernel_against_ref(
        problem,
        kernel,
        num_correct_trials=5,
        num_perf_trials=100,
        measure_performance=True,
        timing_method="cuda_event",
        device=torch.device("cuda:0"),
        backend="cute",
        precision=torch.float32,
    )
    call_s = time.monotonic() - started
    verdict = "correct" if result and result.correctness else "incorrect"
    return {
        "verdict": verdict if result and result.compiled else "not compiled",
        "passed": bool(result and result.correctness),
        "call_s": call_s,
        "kernel_ms": result.runtime if result else None,
        "reference_ms": result.ref_runtime if result else None,
        "said": {key: str(value)[:300] for key, value in (result.metadata if result else {}).items()},
        "empty_modules": missing,
    }


def in_a_process(side: str, options: argparse.Namespace, problem: str, kernel: str) -> dict:
    """One side's evaluation in a process of its own, and the seconds from its start to its verdict."""
    command = [sys.executable, __file__, "--kernelbench", str(options.kernelbench), "--side", side]
    with tempfile.TemporaryFile("w+") as errors:
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        late = threading.Timer(options.timeout, process.kill)
        late.start()
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps([problem, kernel]))
        process.stdin.close()
        found: dict = {}
        for line in process.stdout:
            if line.startswith(_ANSWER):
                answered = json.loads(line.removeprefix(_ANSWER))
                # The first says that there is a verdict, later ones add to it.
                found = found | answered | ({} if found else {"wall_s": time.monotonic() - started})
        process.wait()
        late.cancel()
        errors.seek(0)
        said = errors.read()
    if found:
        return found
    if time.monotonic() - started >= options.timeout:
        return {"verdict": f"none within {options.timeout:.0f} s", "passed": None, "wall_s": options.timeout}
    sys.exit(f"The evaluation by {side} did not run:\n{said[-2000:]}")


async def ours(problem: str, kernel: str) -> None:
    """Our evaluation: the first verdict of a new evaluator, and a second one of the same."""
    sys.path.insert(0, str(ROOT))
    from cutegen_nb.core.candidate import Candidate
    from cutegen_nb.core.problem import Problem, ProblemForm
    from cutegen_nb.evaluator.evaluator import KernelEvaluator

    evaluator = KernelEvaluator(device="cuda", baselines=("eager",))
    given = Problem(name="relu", source=problem, form=ProblemForm.KERNELBENCH)
    candidate = Candidate(source=kernel, author="benchmark")
    started = time.monotonic()
    evaluation = await evaluator.evaluate(given, candidate, lambda _: None)
    timing = evaluation.timing
    _answer({
        "verdict": evaluation.label,
        "passed": evaluation.passed,
        "call_s": time.monotonic() - started,
        "kernel_ms": timing.median_ms if timing else None,
        "reference_ms": timing.baselines[0].median_ms if timing and timing.baselines else None,
        "said": evaluation.summary,
    })  # fmt: skip
    started = time.monotonic()
    await evaluator.evaluate(given, candidate, lambda _: None)
    _answer({"again_s": time.monotonic() - started})
    await evaluator.close()


async def measure_device() -> float:
    """Parts of a device's state kept between sessions, so that no verdict waits for it."""
    from cutegen_nb.evaluator.evaluator import KernelEvaluator

    evaluator = KernelEvaluator(device="cuda")
    started = time.monotonic()
    await evaluator.device()
    await evaluator.close()
    return time.monotonic() - started


def _answer(found: dict) -> None:
    print(_ANSWER + json.dumps(found), flush=True)


def _line(name: str, row: dict) -> str:
    latency = f", kernel {row['kernel_ms']:.3f} ms" if (row.get("kernel_ms") or 0) > 0 else ""
    again = f" (again {row['again_s']:.1f} s)" if "again_s" in row else ""
    return f"  {name:<12} {row['verdict']:<14} {row['wall_s']:7.1f} s{again}{latency}"


def compare(options: argparse.Namespace) -> dict:
    """Each case through both, printed as it comes."""
    problem = options.problem.read_text() if options.problem else RELU
    rows = {}
    device_s = asyncio.run(measure_device())
    print(f"the device measured in {device_s:.1f} s; in no figure below", flush=True)
    for name in options.cases.split(","):
        kernel = KERNEL.replace("ANSWER", CASES[name])
        print(f"{name}: store {CASES[name]}", flush=True)
        row = {}
        for side, words in SIDES.items():
            row[side] = in_a_process(side, options, problem, kernel)
            print(_line(words, row[side]), flush=True)
        ratio = row["ours"]["wall_s"] / row["kernelbench"]["wall_s"]
        row |= {"ratio": ratio, "same_verdict": row["ours"]["passed"] == row["kernelbench"]["passed"]}
        same = "same verdict" if row["same_verdict"] else "verdicts differ"
        print(f"  ours ÷ KernelBench: {ratio:.2f} of the time to a verdict; {same}", flush=True)
        rows[name] = row
    missing = sorted({item for row in rows.values() for item in row["kernelbench"].get("empty_modules", ())})
    if missing:
        print(f"Empty modules stood in for {', '.join(missing)}: imported by their evaluation, never used.")
    return {"date": time.strftime("%Y-%m-%d"), "device": _device(), "device_s": device_s, "cases": rows}


def _device() -> str:
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    return subprocess.run(query, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    """Run the cases, or one of them through their evaluator."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernelbench", type=Path, required=True, help="a checkout's folder")
    parser.add_argument("--problem", type=Path, help="a KernelBench file whose answer is ReLU")
    parser.add_argument("--cases", default="right,wrong", help=f"of {', '.join(CASES)}")
    parser.add_argument("--timeout", type=float, default=200, help="seconds for each of their evaluations")
    parser.add_argument("--json", type=Path, help="write everything to this file")
    parser.add_argument("--side", choices=tuple(SIDES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        problem, kernel = json.load(sys.stdin)
        if options.side == "ours":
            asyncio.run(ours(problem, kernel))
        else:
            _answer(theirs(options.kernelbench, problem, kernel))
        return
    sys.path.insert(0, str(ROOT))
    from cutegen_nb.core.errors import CutegenError

    if not (options.kernelbench / "src" / "kernelbench" / "eval.py").is_file():
        parser.error(f"{options.kernelbench} is no copy of KernelBench: it holds no src/kernelbench/eval.py")
    try:
        answer = compare(options)
    except CutegenError as error:
        sys.exit(f"error: {error}")
    if options.json:
        options.json.write_text(json.dumps(answer, indent=1) + "\n")


if __name__ == "__main__":
    main()
