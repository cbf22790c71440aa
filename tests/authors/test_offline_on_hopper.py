"""The offline author's products and convolutions on tensor cores, compiled for sm_90a on any machine: registers and spills."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cutegen_nb.authors.offline.matmul.writer import MatmulWriter
from cutegen_nb.authors.offline.operators.convolution.strategies import SHIFTED
from cutegen_nb.authors.offline.operators.writer import OperatorsWriter
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.problem.trace import trace_facts

pytestmark = pytest.mark.slow

PROBLEM = """
import torch

def product(a, b):
    return a @ b

def get_inputs():
    return [torch.empty(4096, 4096, dtype=torch.{dtype}) for _ in range(2)]
"""

PROGRAM = """
import gc, importlib.util, json, os, sys, types
gc.disable()  # almost all that the imports make stays
import torch
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_tensor
from cutegen_nb.analysis.binary.cubin import resources_of

path, dtype, folder = sys.argv[1:]
spec = importlib.util.spec_from_file_location("candidate", path)
candidate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(candidate)
hopper = types.SimpleNamespace(shared_memory_per_block_optin=227 * 1024)
torch.cuda.get_device_properties = lambda device: hopper
a, b, d = (torch.empty((4096, 4096, 1), dtype=getattr(torch, dtype), device="meta") for _ in range(3))
element = {"float32": cutlass.Float32, "float16": cutlass.Float16}[dtype]
fakes = [make_fake_tensor(element, x.shape, stride=x.stride(), assumed_align=16) for x in (a, b.transpose(0, 1), d)]
chosen = candidate.settings(a, b.transpose(0, 1), d)
cute.compile(candidate.product_host, *fakes, *chosen, cuda.CUstream(0))
(cubin,) = [name for name in os.listdir(folder) if name.endswith(".cubin")]
with open(os.path.join(folder, cubin), "rb") as file:
    (found,) = resources_of(file.read(), "sm_90a").values()
print("RESULT" + json.dumps([chosen[0], found.registers, found.spill_store_bytes, found.stack_bytes]), flush=True)
os._exit(0)  # without the interpreter's own end, which takes a second
"""


# Half precision first, as its tile is the larger one: 128 sums a thread, not 64.
@pytest.mark.first(1)
@pytest.mark.parametrize(("dtype", "tile"), [("float16", [256, 128, 64]), ("float32", [128, 128, 32])])
def test_the_largest_tile_fits_the_registers_of_hopper(dtype, tile, tmp_path):
    problem = Problem(
        name="product", source=PROBLEM.format(dtype=dtype), form=ProblemForm.FUNCTION, function="product"
    )
    steps = ("shared-memory-tiles", "tensor-cores", "multistage-copies")
    candidate = tmp_path / "candidate.py"
    candidate.write_text(MatmulWriter().write(problem, trace_facts(problem), steps).source)
    variables = {"CUTE_DSL_ARCH": "sm_90a", "CUTE_DSL_KEEP": "cubin", "CUTE_DSL_DUMP_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(candidate), dtype, str(tmp_path)],
        capture_output=True, text=True, check=False, env={**os.environ, **variables},
    )  # fmt: skip
    assert "RESULT" in done.stdout, done.stderr[-3000:]
    chosen, registers, spilled, stack = json.loads(done.stdout.rpartition("RESULT")[2])
    assert chosen == tile
    # 256 threads share 65,536 registers of a multiprocessor.
    assert 128 < registers <= 255
    assert spilled == stack == 0


CONVOLUTION = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(64, {filters}, 3, bias=False).to(torch.{dtype})
    def forward(self, x):
        return self.conv(x)

def get_inputs():
    return [torch.empty(8, 64, 512, 512, dtype=torch.{dtype})]

def get_init_inputs():
    return []
"""

CONVOLVING = """
import gc, importlib.util, json, os, sys, types
gc.disable()  # almost all that the imports make stays
import torch
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import make_fake_tensor
from cutegen_nb.analysis.binary.cubin import resources_of

path, filters, dtype, folder = sys.argv[1:]
spec = importlib.util.spec_from_file_location("candidate", path)
candidate = importlib.util.module_from_spec(spec)
spec.loader.exec_module(candidate)
hopper = types.SimpleNamespace(shared_memory_per_block_optin=227 * 1024, multi_processor_count=132)
torch.cuda.get_device_properties = lambda device: hopper
elements = {torch.float32: cutlass.Float32, torch.float16: cutlass.Float16, torch.int32: cutlass.Int32}

def launch(host, tensors, *chosen):
    fakes = [make_fake_tensor(elements[x.dtype], x.shape, stride=x.stride(), assumed_align=16) for x in tensors]
    cute.compile(host, *fakes, *chosen, cuda.CUstream(0))
    (cubin,) = [name for name in os.listdir(folder) if name.endswith(".cubin")]
    with open(os.path.join(folder, cubin), "rb") as file:
        found = resources_of(file.read(), "sm_90a")
    spilled = sum(one.spill_store_bytes + one.stack_bytes for one in found.values())
    print("RESULT" + json.dumps([chosen[0], chosen[1], spilled]), flush=True)

kind = getattr(torch, dtype)
x = torch.empty((8, 64, 512, 512), dtype=kind, device="meta")
candidate.conv(launch, x, torch.empty((int(filters), 64, 3, 3), dtype=kind, device="meta"))
os._exit(0)
"""


@pytest.mark.long
@pytest.mark.first(1)
@pytest.mark.parametrize(("filters", "dtype", "tile"), [
    (128, "float16", [384, 128, 64]), (64, "float32", [384, 64, 32]),
])  # fmt: skip
def test_the_sums_of_a_convolution_fit_the_registers_of_three_warp_groups(filters, dtype, tile, tmp_path):
    source = CONVOLUTION.format(filters=filters, dtype=dtype)
    problem = Problem(name="convolution", source=source, form=ProblemForm.KERNELBENCH)
    candidate = tmp_path / "candidate.py"
    candidate.write_text(OperatorsWriter().write(problem, trace_facts(problem), (SHIFTED,)).source)
    variables = {"CUTE_DSL_ARCH": "sm_90a", "CUTE_DSL_KEEP": "cubin", "CUTE_DSL_DUMP_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CONVOLVING, str(candidate), str(filters), dtype, str(tmp_path)],
        capture_output=True, text=True, check=False, env={**os.environ, **variables},
    )  # fmt: skip
    assert "RESULT" in done.stdout, done.stderr[-3000:]
    # Without min_blocks_per_mp=1 the compiler keeps to 128 registers a thread, and spills.
    assert json.loads(done.stdout.rpartition("RESULT")[2]) == [tile, 3, 0]
