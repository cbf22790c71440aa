"""The offline author's convolutions against cuDNN, on a Hopper GPU.

    python benchmarks/convolutions.py [--only NAMES] [--out F]

Its kernel for Hopper (``shifted-wgmma``) runs in turns with PyTorch's convolution (cuDNN, algorithms tried
beforehand), without TF32 and with it, each call after a write of eight times the L2. Printed are the medians
of CUDA events, the ratios to ours, above 1 where ours is faster, the relative errors of one image against
float64, the share of an H200's roof, and the time of each of our launches.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from make_knowledge import h200
from products import driver, imported, medians_ms, write_rows

from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.authors.offline.operators.convolution.strategies import SHIFTED
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

CASES = {
    "50": ("Conv2d(3, 96, 11, stride=4, padding=2)", (256, 3, 224, 224), "float32"),
    "54": ("Conv3d(3, 64, 3, bias=False)", (16, 3, 64, 64, 64), "float32"),
    "55": ("Conv2d(64, 128, 3, bias=False)", (8, 64, 512, 1024), "float32"),
    "56": ("Conv2d(64, 128, (5, 7), bias=False)", (8, 64, 512, 256), "float32"),
    "57": ("ConvTranspose2d(64, 64, 3, bias=False)", (8, 64, 1024, 1024), "float32"),
    "61": ("ConvTranspose3d(48, 48, 3, bias=False)", (8, 48, 64, 64, 64), "float32"),
    "63": ("Conv2d(16, 128, 3, bias=False)", (16, 16, 1024, 1024), "float32"),
    "67": ("Conv1d(64, 128, 3, bias=False)", (32, 64, 131072), "float32"),
    "71": ("ConvTranspose2d(32, 32, 3, bias=False)", (8, 32, 512, 1024), "float32"),
    "76": ("Conv1d(64, 128, 3, stride=3, dilation=4, bias=False)", (64, 64, 524280), "float32"),
    "2-2": ("ConvTranspose2d(64, 64, 3, 2, 1, output_padding=1)", (128, 64, 128, 128), "float32"),
    "small": ("Conv2d(64, 128, 3, padding=1)", (16, 64, 56, 56), "float32"),
    "half": ("Conv2d(256, 256, 3, padding=1)", (32, 256, 56, 56), "float16"),
    "half-strided": ("Conv2d(128, 256, 3, stride=2, padding=1)", (32, 128, 112, 112), "float16"),
}  # fmt: skip
"""Module, shape of its input and dtype, by name: a number of KernelBench's level 1, or of level 2 as 2-N."""

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.{module}.to(torch.{dtype})
    def forward(self, x):
        return self.conv(x)
def get_inputs():
    return [torch.rand({shape}, dtype=torch.{dtype})]
def get_init_inputs():
    return []
"""


@contextmanager
def tf32(*, allowed: bool) -> Any:
    """Let cuDNN round float32 to TF32, or forbid it."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = allowed
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


def reference(model: torch.nn.Module, x: torch.Tensor, *, rounded: bool) -> torch.Tensor:
    """Convolve by cuDNN, with TF32 or without."""
    with tf32(allowed=rounded):
        return model(x)


def launches_ms(call: Callable[[], object]) -> dict[str, float]:
    """Time each launch of a call."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as found:
        call()
        torch.cuda.synchronize()
    times: dict[str, float] = {}
    for event in found.events():
        if event.name.startswith("kernel_cutlass_"):
            name = event.name.removeprefix("kernel_cutlass_").partition("_kernel")[0]
            times[name] = times.get(name, 0.0) + event.device_time / 1e3
    return times


def measured(case: str, folder: str) -> dict[str, Any]:
    """Time one shape, after the results of one image were compared with float64's."""
    module, shape, dtype = CASES[case]
    source = PROBLEM.format(module=module, shape=shape, dtype=dtype)
    problem = Problem(name="convolution", source=source, form=ProblemForm.KERNELBENCH)
    facts = trace_facts(problem)
    given = Path(folder) / f"given_{case}.py"
    given.write_text(source)
    torch.manual_seed(1)
    model = imported(given).Model().cuda()
    x = torch.rand(shape, dtype=getattr(torch, dtype), device="cuda")
    calls: dict[str, Callable[[], torch.Tensor]] = {}
    path = Path(folder) / f"ours_{case}.py"
    path.write_text(OperatorsWriter().write(problem, facts, (SHIFTED,)).source)
    ours = imported(path).ModelNew()
    ours.load_state_dict(model.state_dict())
    calls["ours"] = partial(ours.cuda(), x)
    calls["cuDNN"] = partial(reference, model, x, rounded=False)
    if dtype == "float32":
        calls["TF32"] = partial(reference, model, x, rounded=True)
    wide = imported(given).Model()
    wide.load_state_dict(model.state_dict())
    truth = wide.double()(x[:1].double().cpu()).cuda()
    errors = {}
    for name, call in calls.items():
        errors[name] = ((call()[:1].double() - truth).norm() / truth.norm()).item()
    del truth
    ms = medians_ms(calls)
    floor = place(facts, h200(driver())).floor_ms
    return {
        "case": case, "module": module, "shape": shape, "dtype": dtype,
        "ms": ms, "error": errors, "floor_ms": floor,
        "roof": {name: floor / value for name, value in ms.items()},
        "ratio": {name: ms[name] / ms["ours"] for name in ms if name != "ours"},
        "launches_ms": launches_ms(calls["ours"]),
    }  # fmt: skip


def line(row: dict[str, Any]) -> str:
    """Return the row as lines of the table."""
    cells = [f"{row['case']:6} {row['dtype']} {row['module']} {'x'.join(map(str, row['shape']))}"]
    for name, ms in row["ms"].items():
        ratio = f" ({row['ratio'][name]:.2f}×)" if name in row["ratio"] else ""
        cells.append(f"{name} {ms:.3f} ms{ratio} roof {row['roof'][name]:.2f} error {row['error'][name]:.1e}")
    cells.append(" + ".join(f"{name} {ms:.3f}" for name, ms in row["launches_ms"].items()))
    return "\n    ".join(cells)


def main() -> None:
    """Time every shape and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default=",".join(CASES), help="names of shapes, separated by commas")
    parser.add_argument("--out", help="a JSON file for the numbers")
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    rows = []
    print(f"{torch.cuda.get_device_name()}: medians, cold L2; relative errors of one image against float64")
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for case in options.only.split(","):
            try:
                rows.append(measured(case, folder))
                print(line(rows[-1]), flush=True)
            except Exception as error:  # noqa: BLE001 - the other shapes are still of use
                print(f"{case} failed: {type(error).__name__}: {str(error)[:2000]}", flush=True)
            torch.cuda.empty_cache()
    if options.out:
        write_rows(Path(options.out), rows)


if __name__ == "__main__":
    sys.exit(main())
