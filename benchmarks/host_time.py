"""Host time of a call: generated kernels called through DLPack and through TVM-FFI, eager, torch.compile.

    python benchmarks/host_time.py

The offline author writes a first kernel for each problem. The same file is called as it is, through TVM-FFI,
and with every tensor converted by ``from_dlpack`` at each call. The problems are so small that the device
waits for the host. Printed are medians in microseconds over blocks of calls, synchronised in between.
"""

from __future__ import annotations

import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import cuda.bindings.driver as cuda
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack

from cutegen_nb.authors.offline.author import WRITERS
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

CALLS, BLOCKS = 100, 30
PROBLEMS = {
    "x + y": ("x + y", ("64, 256", "64, 256")),
    "softmax(x)": ("torch.softmax(x, 1)", ("64, 256",)),
    "relu(x @ y)": ("torch.relu(x @ y)", ("64, 64", "64, 64")),
    "softmax(x @ y)": ("torch.softmax(x @ y, 1)", ("64, 64", "64, 64")),
}
"""Expression and shapes of its inputs, by name."""


def problem_of(expression: str, shapes: tuple[str, ...]) -> Problem:
    names = ", ".join("xy"[: len(shapes)])
    inputs = ", ".join(f"torch.randn({shape})" for shape in shapes)
    source = (
        f"import torch\n\ndef reference({names}):\n    return {expression}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n"
    )
    return Problem(name="host_time", source=source, form=ProblemForm.FUNCTION, function="reference")


def written(problem: Problem, folder: str) -> ModuleType:
    """Write the offline author's first kernel and import it."""
    facts = trace_facts(problem)
    writer = next(item for item in WRITERS if item.accepts(facts))
    path = Path(folder) / "kernel.py"
    path.write_text(writer.write(problem, facts, ()).source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("kernel", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compile_for_dlpack(host: Callable[..., None], tensors: tuple[torch.Tensor, ...], *numbers: object):
    """Take the place of a kernel file's ``compile_for``: each call converts its tensors and the stream."""

    def shown(given: tuple[torch.Tensor, ...]) -> list[object]:
        stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
        aligned = [x.data_ptr() % 16 == 0 for x in given]
        tensors = [
            from_dlpack(x, assumed_align=16 if whole else x.element_size())
            for x, whole in zip(given, aligned, strict=True)
        ]
        return [*tensors, stream]

    *like, stream = shown(tensors)
    compiled = cute.compile(host, *like, *numbers, stream)
    return lambda *given: compiled(*shown(given))


def microseconds(call: Callable[[], object]) -> float:
    """Median time in which the host queues a call."""
    for _ in range(CALLS):
        call()
    found = []
    for _ in range(BLOCKS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        for _ in range(CALLS):
            call()
        found.append((time.perf_counter() - began) / CALLS * 1e6)
    torch.cuda.synchronize()
    return statistics.median(found)


def times(expression: str, shapes: tuple[str, ...], folder: str) -> dict[str, float]:
    """Host time of each way to compute one problem, in microseconds."""
    problem = problem_of(expression, shapes)
    scope: dict[str, Callable[..., torch.Tensor]] = {}
    exec(problem.source, scope)
    reference = scope["reference"]
    inputs = [one.cuda() for one in scope["get_inputs"]()]
    by_ffi, by_dlpack = written(problem, folder), written(problem, folder)
    by_dlpack.compile_for = compile_for_dlpack  # type: ignore[attr-defined]
    calls = {
        "DLPack": by_dlpack.ModelNew(),
        "TVM-FFI": by_ffi.ModelNew(),
        "eager": reference,
        "torch.compile": torch.compile(reference),
    }
    for call in calls.values():
        torch.testing.assert_close(call(*inputs), reference(*inputs), rtol=1e-4, atol=1e-4)
    return {name: microseconds(lambda call=call: call(*inputs)) for name, call in calls.items()}


def main() -> None:
    """Time every problem and print a table."""
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: µs of the host a call")
    torch.backends.cuda.matmul.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for name, (expression, shapes) in PROBLEMS.items():
            found = times(expression, shapes, folder)
            listed = "  ".join(f"{way} {value:6.1f}" for way, value in found.items())
            ratios = "  ".join(
                f"{way} ÷ TVM-FFI {found[way] / found['TVM-FFI']:.2f}" for way in ("DLPack", "torch.compile")
            )
            print(f"{name:16} {listed}   {ratios}", flush=True)


if __name__ == "__main__":
    main()
