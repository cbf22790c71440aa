"""Public CuTe DSL programs, unmodified, at small sizes, each with its own check of results on.

They are fetched, not kept here: `make test-public`, or CUTEGEN_PUBLIC=FOLDER of their checkouts.
A run passes when the program's own check passed (it raises, or says the listed words; no option skips it) and
the simulator executed a launch of it, whole, with no finding. The list is `public_programs.toml`.
"""

import asyncio
import os
from pathlib import Path

import pytest

from cutegen_nb.core.simulation import Ending
from cutegen_nb.simulator.script.run import Script, Streams, run_program
from tests.simulator import public_programs as public

FOLDER = Path(os.environ.get("CUTEGEN_PUBLIC", "")).absolute()
PROGRAMS = {program.name: program for program in public.programs()}
PYTEST = str(Path(pytest.__file__).with_name("__main__.py"))
CUTLASS = "NVIDIA/cutlass"
EXAMPLES = "examples/python/CuTeDSL"

fetched = pytest.mark.skipif(
    not os.environ.get("CUTEGEN_PUBLIC"),
    reason="CUTEGEN_PUBLIC names no folder of public programs; `make test-public` fetches them",
)


@pytest.fixture(autouse=True)
def folder_of_its_own(tmp_path, monkeypatch):
    """Programs may write files where they run."""
    monkeypatch.chdir(tmp_path)


def simulated(repository, path, words, **how):
    output = bytearray()
    imports = [FOLDER / "packages", *(FOLDER / item for item in public.repositories()[repository].imports)]
    places = [*map(str, imports), os.environ.get("PYTHONPATH", "")]
    program = Script(script=str(path), arguments=tuple(words), deadline_s=600, **how)
    streams = Streams(stdin=asyncio.subprocess.DEVNULL, on_output=output.extend)
    environment = {**os.environ, "PYTHONPATH": ":".join(filter(None, places))}
    return asyncio.run(run_program(program, streams, environment=environment)), output.decode()


def simulated_entry(program, **how):
    path = FOLDER / program.repository / program.path
    if program.test is None:
        words = program.arguments.split()
    else:
        node = f"{path}::{program.test}" if program.test else str(path)
        path, words = PYTEST, ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore", node]
    return simulated(program.repository, path, words, architecture=program.architecture, **how)


def of_cutlass(path, words, **how):
    return simulated(CUTLASS, FOLDER / CUTLASS / EXAMPLES / path, words.split(), **how)


def check_that_it_passes(done, output, program):
    assert (done.ending, done.sentence, done.not_simulated) == (Ending.FINISHED, "", ""), output[-3000:]
    assert program.words in output
    assert "skip" not in program.arguments
    assert done.launch_count >= 1
    assert not done.sampled
    assert [item.message for item in done.findings] == []


def check_the_finding(done, output, program):
    assert program.words in [item.kind for item in done.findings], output[-3000:]
    assert done.not_simulated == ""


def check_the_refusal(done, output, program):
    assert program.words in done.not_simulated, output[-3000:]


def check_its_own_fault(done, output, program):
    assert done.ending in (Ending.RAISED, Ending.EXITED)
    assert program.words in done.sentence + output, output[-3000:]
    assert (done.not_simulated, done.findings) == ("", ())


CHECKS = {
    public.PASSES: check_that_it_passes,
    public.FOUND: check_the_finding,
    public.REFUSED: check_the_refusal,
    public.OWN_FAULT: check_its_own_fault,
}


@fetched
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_ends_as_the_list_says(name):
    program = PROGRAMS[name]
    if program.outcome == public.FAILS:
        pytest.xfail(program.words)
    CHECKS[program.outcome](*simulated_entry(program), program)


@fetched
@pytest.mark.parametrize("stem", ["elementwise_add", "sgemm", "tensorop_gemm", "flash_attention_v2"])
def test_the_program_s_own_check_is_on_it_fails_when_only_one_cta_of_the_grid_ran(stem):
    alike = [one for one in PROGRAMS.values() if one.repository == CUTLASS and Path(one.path).stem == stem]
    program = alike[-1]  # the first size of some fits one CTA
    done, output = simulated_entry(program, max_ctas=1)
    assert done.sampled
    assert "Mismatched elements" in output
    assert (done.ending, done.exit_status) == (Ending.RAISED, 1)


@fetched
def test_a_size_that_the_example_does_not_guard_is_found_at_its_line():
    """elementwise_apply computes which elements exist and loads the others all the same."""
    done, _ = of_cutlass("cute/ampere/kernel/elementwise/elementwise_apply.py", "--M 64 --N 96")
    assert [item.kind for item in done.findings] == ["out-of-bounds"]
    line = done.sources[done.findings[0].file].splitlines()[done.findings[0].line - 1]
    assert ".load()" in line


TVM_FFI = "dsl_tutorials/tvm_ffi"


@fetched
def test_the_tutorial_for_tvm_ffi_calls_with_torch_tensors():
    done, output = of_cutlass(f"{TVM_FFI}/jit_and_use_in_torch.py", "")
    assert (done.ending, done.sentence, done.not_simulated) == (Ending.FINISHED, "", ""), output[-3000:]
    assert (done.launch_count, done.findings) == (2, ())
    assert "tensor([ 1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10.])" in output
    assert "tensor([ 2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11.])" in output


@fetched
def test_the_tutorial_on_errors_of_tvm_ffi_gets_the_dsl_s_words():
    """Its last call has a tensor of another shape, which nothing catches."""
    done, _ = of_cutlass(f"{TVM_FFI}/error_reporting.py", "")
    assert (done.ending, done.exit_status, done.launch_count) == (Ending.RAISED, 1, 0)
    assert "ValueError: Mismatched a.shape[0] on argument #0" in done.sentence


@fetched
def test_pointers_to_tensors_that_are_gone_are_found():
    """grouped_gemm's benchmark keeps the addresses of its groups' tensors and drops the tensors."""
    groups = "--num_groups 2 --problem_sizes_mnkl ((128,128,128,1),(256,128,64,1)) --tile_shape_mn 128,128"
    done, _ = of_cutlass(
        "cute/hopper/kernel/grouped_gemm/grouped_gemm.py",
        f"{groups} --warmup_iterations 0 --iterations 1",
        architecture="sm_90a",
    )
    assert [item.kind for item in done.findings] == ["out-of-bounds"]
    assert done.launch_count >= 1
