"""The bridge, in processes of its own because it changes torch and the DSL for good."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.simulator.host import simulation as bridge

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
PROGRAMS = ("elementwise", "forms", "kernels", "faults", "habits", "driver_memory")


def run_python(*arguments, folder=ROOT, **environment):
    return subprocess.run(
        [sys.executable, "-W", "ignore", *arguments],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


def run_programs(architecture, names, folder):
    paths = [str(HERE / "programs" / f"{name}.py") for name in names]
    done = run_python(str(HERE / "bridge_template.py"), architecture, *paths, folder=folder)
    assert "RESULT" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    return json.loads(done.stdout.rpartition("RESULT")[2])


def line_of(program, beginning):
    lines = (HERE / "programs" / f"{program}.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("working")


@pytest.fixture(scope="module")
def ampere(folder):
    answer = run_programs("sm_80", PROGRAMS, folder)
    return {**dict(zip(PROGRAMS, answer["results"], strict=True)), "device_outside": answer["device_outside"]}


def test_a_kernel_in_kernelbench_form_runs_and_equals_torch(ampere):
    found = ampere["elementwise"]
    assert found.get("right") == [True, True], found


def test_dynamic_shapes_run_from_one_compilation(ampere):
    found = ampere["elementwise"]
    assert (found["compiled"], found["kernels"]) == (1, 1)
    assert found["grids"] == [[1, 1, 1], [6, 1, 1]]


def test_counts_are_kept_for_each_launch_and_line_without_the_program_asking(ampere):
    found = ampere["elementwise"]
    assert found["loc"]
    assert found["file"].endswith("elementwise.py")
    assert found["load_bytes"] == 2 * 33 * 20 * 4
    assert line_of("elementwise", "gC[index") in found["lines"]


@pytest.mark.parametrize(
    "form", ["direct", "straight", "options", "pointers", "several", "same_name", "parameter"]
)
def test_each_way_of_calling_a_function_works(ampere, form):
    assert ampere["forms"].get(form) is True, ampere["forms"]


@pytest.mark.parametrize("kernel", ["relu", "vectorised", "row_sum", "product"])
def test_kernels_with_vectors_shared_memory_and_loops_equal_torch(ampere, kernel):
    assert ampere["kernels"].get(kernel) is True, ampere["kernels"]


def test_an_access_past_a_storage_is_a_fault_with_line_and_name_and_stops_later_launches(ampere):
    found = ampere["faults"].get("past_the_end")
    assert found is not None, ampere["faults"]
    assert found.pop("line") == line_of("faults", "y[bidx")
    assert found == {
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
    assert ampere["faults"].get(case) is True, ampere["faults"]


@pytest.mark.parametrize("habit", ["factories", "moves", "modules", "cuda_module", "driver"])
def test_habits_of_gpu_code_hold(ampere, habit):
    assert ampere["habits"].get(habit) is True, ampere["habits"]


@pytest.mark.parametrize(
    "case", ["driver_allocation", "runtime_allocation", "errors", "properties", "unknown_time"]
)
def test_memory_and_spans_of_the_bindings_are_answered(ampere, case):
    assert ampere["driver_memory"].get(case) is True, ampere["driver_memory"]


def test_outside_the_habits_torch_is_its_own(ampere):
    assert ampere["device_outside"] == "cpu"


def test_compiling_writes_nothing_into_the_working_folder(ampere, folder):
    assert ampere["device_outside"] == "cpu"
    assert list(folder.iterdir()) == []


def test_ten_forks_of_one_process_each_compile_and_run(tmp_path):
    found = run_programs("sm_90a", ["elementwise"] * 10, tmp_path)["results"]
    assert [one.get("right") for one in found] == [[True, True]] * 10, found[0]


def test_kernels_compiled_for_hopper_run_too(tmp_path):
    found = run_programs("sm_90a", ["kernels"], tmp_path)["results"][0]
    assert found.get("row_sum"), found
    assert found["relu"]
    assert found["product"]


def test_importing_the_bridge_imports_neither_torch_nor_the_dsl():
    code = (
        "import sys; from cutegen_nb.simulator import bridge; bridge.prepare_environment('sm_80');"
        "sys.exit(bool({'torch', 'cutlass', 'cuda'} & set(sys.modules)))"
    )
    assert run_python("-c", code).returncode == 0


def test_an_unknown_architecture_is_named_with_the_known_ones():
    with pytest.raises(ConfigurationError, match=r"sm_42.*sm_80"):
        bridge.prepare_environment("sm_42")


def test_a_process_prepared_for_another_architecture_is_refused():
    code = "from cutegen_nb.simulator import bridge; bridge.install('sm_90a')"
    done = run_python("-c", code, **bridge.prepare_environment("sm_80"))
    assert "ConfigurationError" in done.stderr
    assert "prepare_environment" in done.stderr
