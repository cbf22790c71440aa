"""Functions exported to files and loaded from them, and the C entry point of a compiled function."""

import tempfile
from pathlib import Path

import pytest
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack, load_module

from cutegen_nb.simulator.host.runtime import UnansweredCall, unanswered_calls


@cute.kernel
def double_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    y[tidx] = x[tidx] * 2.0


@cute.jit
def double(x: cute.Tensor, y: cute.Tensor):
    double_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def fresh():
    return torch.randn(64, device="cuda"), torch.zeros(64, device="cuda")


def compiled(**settings):
    x, y = fresh()
    return cute.compile(double, from_dlpack(x), from_dlpack(y), **settings)


def a_function_with_tvm_ffi_is_loaded_from_its_file(simulation):
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "double.o"))
        compiled(options="--enable-tvm-ffi").export_to_c(path, function_name="exported")
        loaded = load_module(path, enable_tvm_ffi=True)
        x, y = fresh()
        loaded.exported(x, y)
        assert torch.equal(y, 2 * x)
        assert len(simulation.launches) == 1
        with pytest.raises(AttributeError, match="no function 'other' that was exported with TVM-FFI"):
            loaded["other"]


def a_function_without_it_is_loaded_in_the_same_program(simulation):
    with tempfile.TemporaryDirectory() as folder:
        compiled().export_to_c(folder, "double", "exported")
        loaded = load_module(str(Path(folder, "double.o")))
        x, y = fresh()
        loaded.exported(from_dlpack(x), from_dlpack(y))
        assert torch.equal(y, 2 * x)


def any_other_file_is_refused_and_stands_in_the_report(simulation):
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(b"\x7fELF from a GPU")
        file.flush()
        before = len(unanswered_calls)
        with pytest.raises(UnansweredCall, match="holds no function that was exported on the simulator"):
            load_module(file.name)
        assert len(unanswered_calls) == before + 1


def the_entry_point_runs_the_launches(simulation):
    x, y = fresh()
    given, result = from_dlpack(x), from_dlpack(y)
    function = compiled()
    function(given, result)
    y.zero_()
    executor = function.to(None)
    arguments, _ = executor.generate_execution_args(given, result)
    packed = executor._get_invoke_packed_args_func(arguments)
    function.capi_func(packed)
    assert torch.equal(y, 2 * x)
    assert len(simulation.launches) == 2


CASES = (
    a_function_with_tvm_ffi_is_loaded_from_its_file,
    a_function_without_it_is_loaded_in_the_same_program,
    any_other_file_is_refused_and_stands_in_the_report,
    the_entry_point_runs_the_launches,
)
