"""Runs every kernel of kernels.py as it stands and with its one token changed; prints JSON.

Usage: template.py FOLDER, where changed sources may be written.
"""

import importlib.util
import json
import os
import sys
from pathlib import Path

from cutegen_nb.simulator.host import simulation as bridge

SOURCE = Path(__file__).with_name("kernels.py")


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def main():
    folder = Path(sys.argv[1])
    only = sys.argv[2:]
    os.environ.update(bridge.prepare_environment("sm_80"))
    simulation = bridge.install("sm_80")
    import torch

    torch.set_num_threads(1)
    text = SOURCE.read_text()
    results = {}
    with simulation.habits():
        faulty = load(SOURCE)
        for name, (old, new) in faulty.FAULTS.items():
            if only and name not in only:
                continue
            body = text.index("\ndef _shared")
            if text.count(old, body) != 1:
                raise SystemExit(f"{name}: {old!r} stands {text.count(old, body)} times in the source")
            twin = folder / f"clean_{name}.py"
            twin.write_text(text[:body] + text[body:].replace(old, new))
            results[name] = {
                "faulty": faulty.run(name, simulation),
                "clean": load(twin).run(name, simulation),
            }
        for name in faulty.HONEST:
            if not only or name in only:
                results[name] = {"clean": faulty.run(name, simulation)}
    sys.stdout.write("\nRESULT" + json.dumps(results))


if __name__ == "__main__":
    main()
