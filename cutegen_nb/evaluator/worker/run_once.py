"""Program that runs a candidate a few times without judging it, to be started under NVIDIA's tools.

``compute-sanitizer … python -P -m cutegen_nb.evaluator.worker.run_once PROBLEM KERNEL.py FOLDER`` runs
``ModelNew`` on the problem's own inputs on the GPU. The first call compiles; the tool sees every launch.
PROBLEM is a file as a person writes it. For another size of the problem it is a ``.json`` file of the encoded
``{"problem": …, "rewrites": …}``.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path

import torch

from cutegen_nb.analysis.problem.problem_text import read_problem
from cutegen_nb.core.codec import decode
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.evaluator.problem import inputs
from cutegen_nb.evaluator.problem.loader import load
from cutegen_nb.evaluator.process import confinement
from cutegen_nb.evaluator.trial.candidate import construct, import_candidate, share_state, write_source
from cutegen_nb.simulator.host import source_positions


def main(arguments: list[str] | None = None) -> int:
    """Run the candidate and return 0. An exception ends the process with its traceback."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("kernel", type=Path)
    parser.add_argument("folder", type=Path, help="where the candidate is written to and may write")
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unconfined", action="store_true", help="as free as the person")
    parser.add_argument("--open-files", action="store_true", help="confine all but files: CUDA may need them")
    parser.add_argument("--watched", action="store_true", help="stay where the tool around it is heard")
    options = parser.parse_args(arguments)
    sys.dont_write_bytecode = True  # a candidate's import leaves nothing
    torch.set_num_threads(1)
    (problem, rewrites), source = _problem(options.problem), options.kernel.read_text(encoding="utf-8")
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if not options.unconfined:
        confinement.confine(folder, files=not options.open_files, watched=options.watched)
    os.chdir(folder)
    with contextlib.suppress(AttributeError, ImportError):  # without the DSL, or with another
        source_positions.install()
    loaded = load(problem, rewrites)
    path = write_source(source, folder)
    with torch.no_grad():
        module = import_candidate(path, hashlib.sha256(source.encode()).hexdigest())
        candidate = construct(module, loaded.init_inputs(), options.seed, "cuda", path)
        share_state(loaded, loaded.reference(options.seed, "cuda"), candidate, options.seed)
        given = inputs.draw(loaded, options.seed, "cuda")
        for _ in range(options.calls):
            candidate(*given)
        torch.cuda.synchronize()
    return 0


def _problem(path: Path) -> tuple[Problem, tuple[Rewrite, ...]]:
    if path.suffix != ".json":
        return read_problem(str(path)), ()
    given = json.loads(path.read_text(encoding="utf-8"))
    return decode(Problem, given["problem"]), decode(tuple[Rewrite, ...], given["rewrites"])


if __name__ == "__main__":
    sys.exit(main())
