"""Process that runs programs on the simulator, each in a fork of its own, and answers with JSON.

Usage: program_server.py ARCHITECTURE ANSWER_FD. Each line of standard input names a program's file and is
followed by its arguments, separated by tabs. An answer is one line, written to the descriptor.

A program has either ``check(simulation, *arguments)``, whose result is the answer, or ``CASES``, functions of
the simulation that assert; the answer then says ``ok`` or the traceback for each by name.
"""

import gc
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path

from cutegen_nb.simulator.host import simulation as host


def load(path):
    spec = importlib.util.spec_from_file_location(f"program_{Path(path).stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def tried(case, simulation):
    simulation.reset()
    try:
        case(simulation)
    except Exception:  # noqa: BLE001 - the test shows it
        return traceback.format_exc()
    return "ok"


def in_child(simulation, path, arguments, write_end):
    result = {"error": "the program ended the process"}
    try:
        with simulation.present_as_cuda():
            module = load(path)
            if hasattr(module, "CASES"):
                result = {case.__name__: tried(case, simulation) for case in module.CASES}
            else:
                result = module.check(simulation, *arguments)
    except Exception:  # noqa: BLE001 - the child's worker main
        result = {"error": traceback.format_exc()}
    with os.fdopen(write_end, "w") as pipe:
        json.dump(result, pipe)
    sys.stdout.flush()
    os._exit(0)


def run(simulation, path, arguments):
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.close(read_end)
        in_child(simulation, path, arguments, write_end)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    os.wait()
    return json.loads(text or '{"error": "the child wrote nothing"}')


def main():
    architecture, answers = sys.argv[1], int(sys.argv[2])
    gc.disable()  # almost all that the imports make stays
    os.environ.update(host.prepare_environment(architecture))
    simulation = host.install(architecture)
    import torch

    gc.freeze()
    gc.enable()
    torch.set_num_threads(1)
    os.set_inheritable(answers, False)
    for line in sys.stdin:
        path, *arguments = line.rstrip("\n").split("\t")
        answer = run(simulation, path, arguments)
        outside = str(torch.zeros(1).device)
        os.write(answers, json.dumps({"answer": answer, "device_outside": outside}).encode() + b"\n")
    os._exit(0)  # without the interpreter's own end, which takes seconds


if __name__ == "__main__":
    main()
