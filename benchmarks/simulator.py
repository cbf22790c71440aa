"""The simulator against Triton's interpreter, in one run: `make benchmark`.

Each side runs in a process of its own, one torch thread; the first call (compilation included) is
left out; the median of the rest is printed with the ratio. These are times of the *simulation* on
this machine's CPU, never of a kernel.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
CASES = {"relu": (1 << 20,), "softmax": (1024, 4096)}
REPEATS = 7


def measure(side: str) -> dict[str, float]:
    """Seconds a call, by case, in a child process for `side`."""
    environment = {**os.environ, "PYTHONPATH": f"{HERE.parent}:{HERE}"}
    run = subprocess.run(
        [sys.executable, __file__, side], env=environment, capture_output=True, text=True, check=False
    )
    if run.returncode:
        raise SystemExit(f"benchmarks/simulator.py: the {side} side failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def child(side: str) -> None:
    """Time one side and print its seconds as JSON."""
    if side == "triton":
        os.environ["TRITON_INTERPRET"] = "1"
        import torch
        import triton_kernels as kernels
    else:
        from cutegen_nb.simulator import bridge

        os.environ.update(bridge.prepare_environment("sm_80"))
        import torch

        simulation = bridge.install("sm_80")
        import cute_kernels as kernels
    torch.set_num_threads(1)
    seconds = {}
    for name, shape in CASES.items():
        x = torch.randn(shape)
        expected = torch.relu(x) if name == "relu" else torch.softmax(x, 1)
        samples = []
        for _ in range(REPEATS + 1):
            if side == "cute":
                simulation.reset()
            start = time.perf_counter()
            y = getattr(kernels, name)(x)
            samples.append(time.perf_counter() - start)
            torch.testing.assert_close(y, expected)
        seconds[name] = statistics.median(samples[1:])
    print(json.dumps(seconds))


def main() -> None:
    """Print both sides and their ratio."""
    triton, cute = measure("triton"), measure("cute")
    print(f"{'case':<22}{'Triton interpreter':>20}{'our simulator':>16}{'ratio':>8}")
    for name, shape in CASES.items():
        label = f"{name} {'×'.join(map(str, shape))}"
        print(f"{label:<22}{triton[name]:>18.3f} s{cute[name]:>14.3f} s{triton[name] / cute[name]:>8.1f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(sys.argv[1])
    else:
        main()
