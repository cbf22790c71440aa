"""Run kernels written for Hopper: ``python wgmma_child.py FOLDER``, on the simulator where no GPU is.

The folder holds pairs NAME.problem.py and NAME.kernel.py. Prints a JSON object: by name, the largest error in
units of the output's root mean square, or words about what else is wrong.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

import torch

HERE = torch.cuda.is_available()
if not HERE:
    from cutegen_nb.analysis.bottleneck.launch_causes import serialised_wgmma
    from cutegen_nb.core.profile import Profile, ProfileSource
    from cutegen_nb.simulator.host.simulation import install, prepare_environment

    os.environ.update(prepare_environment("sm_90a"))
    torch.set_num_threads(1)
    SIMULATION = install("sm_90a")


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem.replace(".", "_"), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def error(folder, name):
    given, written = load(folder / f"{name}.problem.py"), load(folder / f"{name}.kernel.py")
    torch.manual_seed(1)
    reference = given.Model(*given.get_init_inputs())
    candidate = written.ModelNew(*given.get_init_inputs())
    candidate.load_state_dict(reference.state_dict())
    reference, candidate = reference.cuda(), candidate.cuda()
    inputs = [x.cuda() for x in given.get_inputs()]
    with torch.no_grad():
        found = candidate(*inputs)
        wanted = reference.double()(*(x.double() for x in inputs))
    wanted, found = wanted.double(), found.double()
    odd = ~wanted.isfinite()
    if not torch.equal(odd, ~found.isfinite()) or not torch.equal(wanted.isnan(), found.isnan()):
        return "infinities or NaN differ"
    size = wanted[~odd].square().mean().sqrt() if (~odd).any() else 1.0
    return float((found - wanted)[~odd].abs().max() / size) if (~odd).any() else 0.0


def tried(folder, name):
    if HERE:
        return error(folder, name)
    SIMULATION.reset()
    with SIMULATION.present_as_cuda():
        off = error(folder, name)
    found = Profile(source=ProfileSource.SIMULATED, device="sm_90a", launches=tuple(SIMULATION.launches))
    slow = serialised_wgmma(found)
    messages = [one.message for one in SIMULATION.findings] + ([] if slow is None else [slow.statement])
    return "; ".join(messages) or off


def main():
    folder = Path(sys.argv[1])
    names = sorted(path.name.removesuffix(".kernel.py") for path in folder.glob("*.kernel.py"))
    sys.stdout.write(json.dumps({name: tried(folder, name) for name in names}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # without the interpreter's own end, which takes a second


if __name__ == "__main__":
    main()
