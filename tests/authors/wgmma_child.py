"""Run kernels written for Hopper: ``python wgmma_child.py FOLDER``, with CUTE_DSL_ARCH=sm_90a where no GPU is.

The folder holds pairs NAME.problem.py and NAME.kernel.py. Prints a JSON object: by name, the largest error in
units of the output's root mean square, or "compiled" where there is no GPU to run on.
"""

import importlib.util
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from cutlass import cute


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem.replace(".", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_only():
    """Let `cute.compile` compile, and its result do nothing."""
    compiling = cute.compile

    def compiled(*given):
        compiling(*given)
        return lambda *_: None

    cute.compile = compiled
    torch.cuda.get_device_properties = lambda _: SimpleNamespace(multi_processor_count=132)
    torch.cuda.current_stream = lambda: SimpleNamespace(cuda_stream=0)


def error(folder, name, device):
    given, written = load(folder / f"{name}.problem.py"), load(folder / f"{name}.kernel.py")
    torch.manual_seed(1)
    reference = given.Model(*given.get_init_inputs()).to(device)
    candidate = written.ModelNew(*given.get_init_inputs()).to(device)
    candidate.load_state_dict(reference.state_dict())
    inputs = [x.to(device) for x in given.get_inputs()]
    with torch.no_grad():
        found = candidate(*inputs)
        if device == "cpu":
            return "compiled"
        wanted = reference.double()(*(x.double() for x in inputs))
    wanted, found = wanted.double(), found.double()
    odd = ~wanted.isfinite()
    if not torch.equal(odd, ~found.isfinite()) or not torch.equal(wanted.isnan(), found.isnan()):
        return "infinities or NaN differ"
    size = wanted[~odd].square().mean().sqrt() if (~odd).any() else 1.0
    return float((found - wanted)[~odd].abs().max() / size) if (~odd).any() else 0.0


def main():
    folder = Path(sys.argv[1])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":
        compile_only()
    names = sorted(path.name.removesuffix(".kernel.py") for path in folder.glob("*.kernel.py"))
    sys.stdout.write(json.dumps({name: error(folder, name, device) for name in names}) + "\n")


if __name__ == "__main__":
    main()
