"""A child process that writes kernels for problems and runs them on the simulator, one JSON line each.

Reads ``{"name": …, "source": …, "steps": [int] | None, "largest_offset": int, "library": [str], "words": str,
"room": int, "columns": int, "threads": bool, "applied": [str] | None}``. Answers with one entry for each
revision the offline author can write, or those after the numbers of strategies in ``steps`` (negative ones count
from the end), or the one with the strategies in ``applied``:
``{"applied": […], "verdict": "right" | sentence, "counters": {…}, "refused": […]}``, or with
``{"declined": sentence}``. ``words`` are a person's, carried out on each revision. ``room`` are the bytes of a
row that a CTA may keep, 0 for as many as it has; ``columns`` the fewest columns of a thread's split, 0 for as
many as on a GPU. With ``threads``, convolutions and maxima over windows are those of ``thread_operators``, and
each answer has its source.
"""

import gc
import importlib.util
import json
import os
import sys
import tempfile
import traceback
from dataclasses import replace
from pathlib import Path

from cutegen_nb.simulator.host.simulation import install, prepare_environment

gc.disable()  # almost all that the imports make stays
ARCHITECTURE = sys.argv[1] if len(sys.argv) > 1 else "sm_80"
os.environ.update(prepare_environment(ARCHITECTURE))

import torch  # noqa: E402
from thread_operators import ThreadOperators  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from cutegen_nb.authors.offline.author import WRITERS  # noqa: E402
from cutegen_nb.authors.offline.fused import operands, residence, splits  # noqa: E402
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter  # noqa: E402
from cutegen_nb.authors.offline.requests import followed, settings_in  # noqa: E402
from cutegen_nb.core.errors import Declined  # noqa: E402
from cutegen_nb.core.library import LibraryFamily  # noqa: E402
from cutegen_nb.core.problem import Problem, ProblemForm  # noqa: E402
from cutegen_nb.core.profile import Counters  # noqa: E402
from cutegen_nb.evaluator.numerics.tolerance import compare, find_tolerance  # noqa: E402
from cutegen_nb.evaluator.problem.loader import load  # noqa: E402
from cutegen_nb.evaluator.problem.trace import trace_facts  # noqa: E402

torch.set_num_threads(1)
SIMULATION = install(ARCHITECTURE)
gc.freeze()
gc.enable()
COLUMNS_OF_A_THREAD = splits.COLUMNS_OF_A_THREAD
HALF_OF_AN_SM, WHOLE_SM = residence.HALF_OF_AN_SM, residence.WHOLE_SM


def widened(value):
    is_float = isinstance(value, torch.Tensor) and value.is_floating_point()
    return value.double() if is_float else value


def oracle_of(reference, inputs, expected):
    """The reference in float64 where it can be had."""
    try:
        return pytree.tree_leaves(reference.double()(*map(widened, inputs)))
    except (RuntimeError, TypeError):
        return list(expected)


def run(problem, facts, written, folder):
    loaded = load(problem, facts.scaled.rewrites)
    torch.manual_seed(7)
    inputs = list(loaded.namespace["get_inputs"]())
    reference = loaded.reference(3, "cpu")
    with torch.no_grad():
        expected = pytree.tree_leaves(reference(*inputs))
        oracle = oracle_of(loaded.reference(3, "cpu"), inputs, expected)
    path = Path(folder) / "candidate.py"
    path.write_text(written.source)
    SIMULATION.reset()
    with SIMULATION.present_as_cuda(), torch.no_grad():
        spec = importlib.util.spec_from_file_location("candidate", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        model = module.ModelNew(*loaded.init_inputs())
        if problem.form is ProblemForm.KERNELBENCH:
            model.load_state_dict(reference.state_dict(), strict=True)
        found = pytree.tree_leaves(model(*inputs))
    if SIMULATION.fault is not None:
        return f"fault: {SIMULATION.fault.finding.message}"
    if len(found) != len(expected):
        return f"{len(found)} outputs, not {len(expected)}"
    length = max([tensor.numel() for tensor in inputs if isinstance(tensor, torch.Tensor)], default=1)
    for index, (got, want, exact) in enumerate(zip(found, expected, oracle, strict=True)):
        if (got.dtype, got.shape) != (want.dtype, want.shape):
            return f"output {index} is {got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}"
        if not want.is_floating_point():
            if not torch.equal(got, want):
                return f"output {index} differs in {int((got != want).sum())} places"
            continue
        truth = exact if exact.is_floating_point() else None
        gate = find_tolerance(want, truth, length)
        comparison = compare(index, got, want, truth, gate, ())
        if not comparison.matches:
            return f"output {index}: relative error {comparison.relative_l2_error:.2e}, {comparison.pattern}"
    return "right"


def answer(request, folder):
    form = ProblemForm.KERNELBENCH if "class Model" in request["source"] else ProblemForm.FUNCTION
    library = tuple(map(LibraryFamily, request["library"]))
    problem = Problem(
        name=request["name"], source=request["source"], form=form, function="reference", library=library
    )
    facts = trace_facts(problem)
    operands.LARGEST_OFFSET = request["largest_offset"]
    splits.COLUMNS_OF_A_THREAD = request["columns"] or COLUMNS_OF_A_THREAD
    residence.HALF_OF_AN_SM = request["room"] or HALF_OF_AN_SM
    residence.WHOLE_SM = request["room"] or WHOLE_SM
    entries = []
    try:
        writers = (OperatorsWriter((ThreadOperators(),)),) if request["threads"] else WRITERS
        writer = next(item for item in writers if item.accepts(facts, library))
        menu = writer.menu(facts, library)
        here = ARCHITECTURE.rstrip("a")
        names = tuple(
            strategy.name for strategy in menu if not strategy.architectures or here in strategy.architectures
        )
        every = range(len(names) + 1)
        counts = every if request["steps"] is None else [every[step] for step in request["steps"]]
        named = request["applied"]
        for applied in [names[:count] for count in counts] if named is None else [tuple(named)]:
            written = writer.write(problem, facts, applied)
            asked = followed(written.source, settings_in(request["words"], names), 4)
            written = replace(written, source=asked.source)
            verdict = run(problem, facts, written, folder)
            total = sum((launch.counters for launch in SIMULATION.launches), start=Counters())
            counters = {"sectors": total.gmem_sectors, "instructions": total.warp_instructions}
            entry = {
                "applied": applied,
                "verdict": verdict,
                "counters": counters,
                "refused": asked.refused,
            }
            shown = verdict != "right" or request["threads"]
            entries.append(entry | ({"source": written.source} if shown else {}))
    except Declined as reason:
        return {"declined": str(reason)}
    return {"revisions": entries}


def main():
    with tempfile.TemporaryDirectory() as folder:
        print("READY", flush=True)  # noqa: T201
        for line in sys.stdin:
            try:
                result = answer(json.loads(line), folder)
            except Exception:  # noqa: BLE001 - whatever it is, the parent has to hear of it
                result = {"error": traceback.format_exc()[-3000:]}
            print("RESULT" + json.dumps(result), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
