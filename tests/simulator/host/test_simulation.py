"""The simulated device as programs see it: DSL, bindings and torch, in forks of a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.simulator.host import simulation as host

PROGRAMS = Path(__file__).parents[1] / "programs"
ROOT = PROGRAMS.parents[2]
PROGRAM = "sampling"


def line_of(program, beginning):
    lines = (PROGRAMS / f"{program}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))


@pytest.fixture(scope="module")
def ampere(simulator_on):
    return simulator_on("sm_80")


def test_launches_run_for_a_sample_of_their_ctas(outcome):
    assert outcome == "ok", outcome


def test_a_kernel_in_kernelbench_form_runs_and_equals_torch(ampere):
    found = ampere.run("elementwise")
    assert found["right"] == [True, True]


def test_dynamic_shapes_run_from_one_compilation(ampere):
    found = ampere.run("elementwise")
    assert (found["compiled"], found["kernels"]) == (1, 1)
    assert found["grids"] == [[1, 1, 1], [6, 1, 1]]


def test_counts_are_kept_for_each_launch_and_line_without_the_program_asking(ampere):
    found = ampere.run("elementwise")
    assert found["loc"]
    assert found["file"].endswith("elementwise.py")
    assert found["load_bytes"] == 2 * 33 * 20 * 4
    assert line_of("elementwise", "gC[index") in found["lines"]


@pytest.mark.parametrize(
    "form", ["direct", "straight", "options", "pointers", "several", "same_name", "parameter"]
)
def test_each_way_of_calling_a_function_works(ampere, form):
    assert ampere.run("forms")[form] is True


@pytest.mark.parametrize("kernel", ["relu", "vectorised", "row_sum", "product"])
def test_kernels_with_vectors_shared_memory_and_loops_equal_torch(ampere, kernel):
    assert ampere.run("kernels")[kernel] is True


def test_an_access_past_a_storage_is_a_fault_with_line_and_name_and_stops_later_launches(ampere):
    assert ampere.run("faults")["past_the_end"] == {
        "line": line_of("faults", "y[bidx"),
        "kind": "out-of-bounds",
        "verdict": "OUT_OF_BOUNDS",
        "names_output": True,
        "later_launches_refused": True,
        "reset_forgets": True,
    }


@pytest.mark.parametrize(
    "case",
    [
        "compile_error",
        "nothing_left_behind",
        "view_reaches_its_storage",
        "freed_memory",
        "launch_limits",
        "caught_fault_stays",
        "unanswered",
    ],
)
def test_bounds_are_live_storages_and_faults_are_not_hidden(ampere, case):
    assert ampere.run("faults")[case] is True


def test_outside_of_programs_torch_is_its_own(ampere):
    assert ampere.told("architectures")["device_outside"] == "cpu"


@pytest.mark.long
def test_forks_of_one_process_each_compile_for_themselves(ampere):
    assert [ampere.told("elementwise")["answer"]["right"] for _ in range(3)] == [[True, True]] * 3


def test_compiling_writes_nothing_into_the_working_folder(ampere):
    ampere.run("kernels")
    assert list(ampere.folder.iterdir()) == []


@pytest.mark.long
def test_kernels_compiled_for_hopper_run_too(simulator_on):
    found = simulator_on("sm_90a").run("kernels")
    assert (found["relu"], found["row_sum"], found["product"]) == (True, True, True)


def test_importing_the_host_imports_neither_torch_nor_the_dsl():
    code = (
        "import sys; from cutegen_nb.simulator.host import simulation as host; host.prepare_environment('sm_80');"
        "sys.exit(bool({'torch', 'cutlass', 'cuda'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT)
    assert done.returncode == 0


def test_an_unknown_architecture_is_named_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"sm_42.*sm_80"):
        host.prepare_environment("sm_42")


def test_a_process_prepared_for_another_architecture_is_refused(ampere):
    assert ampere.run("architectures") == {
        "again": True,
        "other": "This process already simulates sm_80, not sm_90a; start another process.",
        "imported": "The DSL was imported for 'sm_80', not 'sm_90a'; set what prepare_environment() returns "
        "before anything imports cutlass.",
    }
