"""Run each named program's fault and its twin on the simulator and print their profiles as JSON.

Usage: child.py ARCHITECTURE PROGRAM...
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

from cutegen_nb.core.codec import encode
from cutegen_nb.core.profile import Profile, ProfileSource
from cutegen_nb.simulator.host.simulation import install, prepare_environment


def loaded(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def profiled(simulation, architecture, module, name):
    simulation.reset()
    with simulation.present_as_cuda():
        sizes = module.run(name)
    found = Profile(source=ProfileSource.SIMULATED, device=architecture, launches=tuple(simulation.launches))
    return {"profile": encode(found), **sizes}


def main():
    architecture, *paths = sys.argv[1:]
    os.environ.update(prepare_environment(architecture))
    simulation = install(architecture)
    import torch

    torch.set_num_threads(1)
    told = {}
    for path in paths:
        module = loaded(path)
        for role, name in (("fault", module.FAULT), ("clean", module.CLEAN)):
            told[f"{Path(path).stem} {role}"] = profiled(simulation, architecture, module, name)
        told[f"{Path(path).stem} cause"] = module.CAUSE
    sys.stdout.write("\nRESULT" + json.dumps(told))


if __name__ == "__main__":
    main()
