"""Launches programs on a GPU for Nsight Compute to look at, each kernel once, and notes their order.

    ncu … python launch.py --size gpu|small --order FILE.json [GROUP...]

Groups are ``rows``, ``products``, the modules of ``tests/analysis/planted`` (``planted`` for all of them), and
``others``: kernels of PyTorch and of Triton, written by other people. With ``--simulate`` the same programs run on
the simulator and FILE.json holds their profiles.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLANTED = HERE.parents[1] / "analysis" / "planted"
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT)]
LARGE, SMALL = 1 << 24, 1 << 16
OURS = ("rows", "products")
NOT_PROGRAMS = {"child"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=("gpu", "small"), default="gpu")
    parser.add_argument("--order", type=Path, required=True)
    parser.add_argument("--simulate", action="store_true")
    parser.add_argument("groups", nargs="*", default=[*OURS, "planted"])
    arguments = parser.parse_args()
    if arguments.groups == ["others"]:
        told = others()
    elif arguments.simulate:
        told = simulated(arguments.groups)
    else:
        told = launched(arguments.groups, arguments.size)
    arguments.order.write_text(json.dumps(told, indent=1))
    return 0


def programs(groups):
    """Each program: its module's name, its own, and what is planted in it."""
    for group in groups:
        if group in OURS:
            module = loaded(HERE / f"{group}.py")
            yield from ((module, group, name, "") for name in module.NAMES)
            continue
        paths = sorted(PLANTED.glob("*.py")) if group == "planted" else [PLANTED / f"{group}.py"]
        for path in paths:
            if path.stem in NOT_PROGRAMS:
                continue
            module = loaded(path)
            yield module, path.stem, module.FAULT, "fault"
            yield module, path.stem, module.CLEAN, "clean"


def loaded(path):
    if path.stem in sys.modules:
        return sys.modules[path.stem]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def elements(module, size):
    return SMALL if size == "small" else getattr(module, "ON_GPU", LARGE)


def launched(groups, size):
    """Run every program on the GPU; what was launched, in order."""
    import torch

    torch.set_default_device("cuda")
    torch.manual_seed(0)
    told = []
    for module, group, name, role in programs(groups):
        try:
            sizes = module.run(name, elements(module, size))
            torch.cuda.synchronize()
            told.append(
                {"group": group, "name": name, "role": role, "file": Path(module.__file__).name, **sizes}
            )
        except Exception:  # noqa: BLE001 - one program that fails leaves the others to be seen
            print(f"FAILED {group} {name}: {traceback.format_exc()[-800:]}", flush=True)
    return told


def simulated(groups):
    """The profile of every program on the simulator, at the small size."""
    from cutegen_nb.core.codec import encode
    from cutegen_nb.simulator.host import simulation as bridge

    os.environ.update(bridge.prepare_environment("sm_90a"))
    simulation = bridge.install("sm_90a")
    import torch

    torch.set_num_threads(1)
    told = {}
    for module, group, name, _ in programs(groups):
        simulation.reset()
        with simulation.present_as_cuda():
            sizes = module.run(name, SMALL)
        told[f"{group} {name}"] = {"launches": [encode(one) for one in simulation.launches], **sizes}
    return told


def others():
    """Kernels by others: PyTorch's element-wise, row-wise and library ones, and one of Triton's."""
    import torch

    x = torch.rand(4096, 4096, device="cuda")
    half = x.to(torch.float16)
    torch.relu(x)
    torch.softmax(x, dim=1)
    torch.nn.functional.layer_norm(x, (4096,))
    half @ half
    told = ["torch.relu", "torch.softmax", "torch.layer_norm", "torch.matmul"]
    try:
        _triton_sum(x)
        told.append("triton")
    except Exception:  # noqa: BLE001 - Triton may be missing or unable to compile here
        print(f"FAILED triton: {traceback.format_exc()[-800:]}", flush=True)
    torch.cuda.synchronize()
    return told


def _triton_sum(x):
    sys.path.insert(0, str(HERE))
    from triton_sum import row_sums

    return row_sums(x)


if __name__ == "__main__":
    sys.exit(main())
