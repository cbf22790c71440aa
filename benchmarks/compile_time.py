"""Time to compile a kernel with many branches, with the DSL's look-up of source lines and with ours.

    python benchmarks/compile_time.py

The kernel is the offline author's march of a max pooling (KernelBench level 1, 41): 32 loads, each with six
bounds. It is compiled for sm_90a with line information, as a worker on a GPU compiles; none is needed here.
Each way has a process of its own. Printed are seconds and their ratio.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

SOURCE = """
import torch

def reference(x):
    return torch.nn.functional.max_pool1d(x, 8, 1, 4, 3)

def get_inputs():
    return [torch.randn(2, 192, 65536)]
"""
PLANES, WIDTH, OUTPUTS = 12288, 65536, 65523


def write_kernel(folder: str) -> Path:
    """Write the author's first step of the pooling and return its file."""
    problem = Problem(name="pooling", source=SOURCE, form=ProblemForm.FUNCTION, function="reference")
    facts = trace_facts(problem)
    path = Path(folder) / "kernel.py"
    path.write_text(OperatorsWriter().write(problem, facts, ("march-over-slices",)).source, encoding="utf-8")
    return path


def seconds(path: Path, *, kept: bool) -> float:
    """Compile the kernel in this process; with `kept`, source positions are looked up once."""
    import cutlass
    import torch
    from cutlass import cute
    from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

    from cutegen_nb.simulator.host import source_positions

    if kept:
        source_positions.install()
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shapes = [(1, PLANES, 1, width) for width in (WIDTH, OUTPUTS)]
    plan = module.view_plan(*(torch.empty(shape, device="meta") for shape in shapes))
    given = [
        make_fake_compact_tensor(cutlass.Float32, shape, stride_order=(3, 2, 1, 0), assumed_align=16)
        for shape in shapes
    ]
    began = time.perf_counter()
    cute.compile(module.view_host, *given, *plan, make_fake_stream())
    return time.perf_counter() - began


def main() -> None:
    """Compile both ways and print the ratio; with a file and a way, compile once and print seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernel", nargs="?", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--kept", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.kernel:
        print(seconds(options.kernel, kept=options.kept))
        return
    environment = os.environ | {"CUTE_DSL_ARCH": "sm_90a", "CUTE_DSL_LINEINFO": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(write_kernel(folder))]
        times = [
            float(
                subprocess.run([*command, *way], env=environment, check=True, stdout=subprocess.PIPE).stdout
            )
            for way in ((), ("--kept",))
        ]
    print(f"the DSL's look-up {times[0]:.1f} s, looked up once {times[1]:.1f} s: {times[0] / times[1]:.0f}×")


if __name__ == "__main__":
    main()
