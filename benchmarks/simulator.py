"""The simulator against Triton's interpreter, in one run: `make benchmark`.

Each kernel on each side runs in a process of its own, one torch thread; the first call (compilation
included) is left out; the shortest of the rest is printed with the ratio, since other work on the machine
only ever adds, and the most memory the process ever had resident, its imports included. These are times of
the *simulation* on this machine's CPU, never of a kernel.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

HERE = Path(__file__).parent
CASES = {"relu": "ReLU 2^20", "softmax": "softmax 1024×4096", "product": "fp16 product 512³"}
REPEATS = 12


def measure(side: str, case: str) -> dict[str, float]:
    """Seconds a call and peak MiB of one kernel on one side, in a child process."""
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent}:{HERE}"}
    run = subprocess.run(
        [sys.executable, __file__, side, case], env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"benchmarks/simulator.py: {case} on the {side} side failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def inputs(case: str) -> tuple[tuple[torch.Tensor, ...], Callable[..., torch.Tensor]]:
    """Arguments of a kernel, and what torch does with them."""
    import torch

    torch.manual_seed(0)
    if case == "product":
        given = tuple(torch.randn(512, 512, dtype=torch.float16) for _ in range(2))
        return given, lambda a, b: (a.float() @ b.float()).half()
    shape = (1 << 20,) if case == "relu" else (1024, 4096)
    return (torch.randn(shape),), torch.relu if case == "relu" else lambda x: torch.softmax(x, 1)


def child(side: str, case: str) -> None:
    """Time one kernel and print its seconds and memory as JSON."""
    if side == "triton":
        os.environ["TRITON_INTERPRET"] = "1"
        import torch
        import triton_kernels as kernels
    else:
        from cutegen_nb.simulator.host import simulation as bridge

        os.environ.update(bridge.prepare_environment("sm_80"))
        import torch

        simulation = bridge.install("sm_80")
        import cute_kernels as kernels
    torch.set_num_threads(1)
    tolerance = {"rtol": 1e-2, "atol": 1e-2} if case == "product" else {}
    samples = []
    with simulation.present_as_cuda() if side == "cute" else contextlib.nullcontext():
        given, reference = inputs(case)
        given = tuple(one.cuda() for one in given) if side == "cute" else given
        for _ in range(REPEATS + 1):
            if side == "cute":
                simulation.reset()
            start = time.perf_counter()
            result = getattr(kernels, case)(*given)
            samples.append(time.perf_counter() - start)
            torch.testing.assert_close(result, reference(*given), **tolerance)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": min(samples[1:]), "peak_mib": peak}))


def main() -> None:
    """Print both sides and their ratio."""
    head = f"{'case':<20}{'Triton interpreter':>20}{'our simulator':>16}{'ratio':>8}{'peak memory':>24}"
    print(head)
    for case, label in CASES.items():
        triton, cute = measure("triton", case), measure("cute", case)
        memory = f"{triton['peak_mib']:.0f} / {cute['peak_mib']:.0f} MiB"
        print(
            f"{label:<20}{triton['seconds']:>18.3f} s{cute['seconds']:>14.3f} s"
            f"{triton['seconds'] / cute['seconds']:>8.1f}{memory:>24}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1], sys.argv[2])
    else:
        main()
