"""The simulator against Triton's interpreter, in one run: `make benchmark`.

    python benchmarks/simulator.py [CASE ...]

Each kernel on each side runs in a process of its own, one torch thread; the first call (compilation
included) is left out; the shortest of the rest is printed with the ratio, since other work on the machine
only ever adds, and the most memory the process ever had resident, its imports included. These are times of
the *simulation* on this machine's CPU, never of a kernel. The cases are in `simulator_cases.py`; the products
through TMA and `wgmma` have no peer.
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

from simulator_cases import CASES

HERE = Path(__file__).parent


def measure(side: str, case: str) -> dict[str, float]:
    """Seconds a call and peak MiB of one kernel on one side, in a child process."""
    places = filter(None, (str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH")))
    environment = {**os.environ, "PYTHONPATH": ":".join(places)}
    run = subprocess.run(
        [sys.executable, __file__, "--child", side, case],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if run.returncode:
        raise SystemExit(f"benchmarks/simulator.py: {case} on the {side} side failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def child(side: str, name: str) -> None:
    """Time one kernel and print its seconds and memory as JSON."""
    case = CASES[name]
    if side == "triton":
        os.environ["TRITON_INTERPRET"] = "1"
        import torch
        import triton_kernels

        kernel = getattr(triton_kernels, case.triton)
    else:
        from cutegen_nb.simulator.host import simulation as bridge

        os.environ.update(bridge.prepare_environment(case.architecture))
        import torch

        simulation = bridge.install(case.architecture)
        kernel = case.ours()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    draw, wanted = case.problem()
    samples = []
    with simulation.present_as_cuda() if side == "cute" else contextlib.nullcontext():
        given = [one.cuda() if side == "cute" else one for one in draw()]
        expected = wanted(*(one.float() for one in given))
        for _ in range(case.repeats + 1):
            if side == "cute":
                simulation.reset()
            start = time.perf_counter()
            result = kernel(*given)
            samples.append(time.perf_counter() - start)
            torch.testing.assert_close(result, expected.to(result.dtype), rtol=1e-2, atol=1e-2)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": min(samples[1:]), "peak_mib": peak}))


def line(name: str) -> str:
    """Measure one case on both sides and return its row of the table."""
    cute = measure("cute", name)
    label = f"{CASES[name].label:<26}"
    if not CASES[name].triton:
        return f"{label}{'':>20}{cute['seconds']:>14.3f} s{'':>8}{cute['peak_mib']:>20.0f} MiB"
    triton = measure("triton", name)
    memory = f"{triton['peak_mib']:.0f} / {cute['peak_mib']:.0f} MiB"
    ratio = triton["seconds"] / cute["seconds"]
    return f"{label}{triton['seconds']:>18.4f} s{cute['seconds']:>14.4f} s{ratio:>8.1f}{memory:>24}"


def main() -> None:
    """Print both sides and their ratio."""
    unknown = [name for name in sys.argv[1:] if name not in CASES]
    if unknown:
        raise SystemExit(f"no case is called {unknown[0]}; there are {', '.join(CASES)}")
    print(f"{'case':<26}{'Triton interpreter':>20}{'our simulator':>16}{'ratio':>8}{'peak memory':>24}")
    for name in sys.argv[1:] or CASES:
        print(line(name), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
