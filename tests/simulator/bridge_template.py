"""Installs the bridge once, then runs each named program in a fork of this process, and prints JSON.

Usage: bridge_template.py ARCHITECTURE PROGRAM...
"""

import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path

from cutegen_nb.simulator.host import simulation as bridge


def load(path):
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def in_child(simulation, path, write_end):
    result = {"error": "the program ended the process"}
    try:
        with simulation.habits():
            result = load(path).check(simulation)
    except Exception:  # noqa: BLE001 - the child's worker main
        result = {"error": traceback.format_exc()}
    with os.fdopen(write_end, "w") as pipe:
        json.dump(result, pipe)
    os._exit(0)


def run(simulation, path):
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.close(read_end)
        in_child(simulation, path, write_end)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    os.wait()
    return json.loads(text or '{"error": "the child wrote nothing"}')


def main():
    architecture, *paths = sys.argv[1:]
    os.environ.update(bridge.prepare_environment(architecture))
    simulation = bridge.install(architecture)
    import torch

    torch.set_num_threads(1)
    results = [run(simulation, path) for path in paths]
    after = torch.zeros(1)
    sys.stdout.write("\nRESULT" + json.dumps({"results": results, "device_outside": str(after.device)}))


if __name__ == "__main__":
    main()
