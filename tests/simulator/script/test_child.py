"""Whole programs in processes of their own: what they find, how they end, and what is known of them after."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from cutegen_nb.core.errors import ConfigurationError, UsageError
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.simulation import Ending
from cutegen_nb.simulator.machine.program import Program
from cutegen_nb.simulator.script.run import Streams, run_program
from cutegen_nb.simulator.script.traceback import is_own

PROGRAMS = Path(__file__).parents[1] / "script_programs"
ADDS = str(PROGRAMS / "adds.py")


def run(script, *arguments, **how):
    """What came of it, and what it printed."""
    output = bytearray()
    streams = Streams(stdin=asyncio.subprocess.DEVNULL, on_output=output.extend)
    program = Program(script=str(script), arguments=tuple(map(str, arguments)), **how)
    return asyncio.run(run_program(program, streams)), output.decode()


def run_text(tmp_path, text, *arguments, **how):
    path = tmp_path / "program.py"
    path.write_text(text)
    return run(path, *arguments, **how)


def line_of(beginning):
    lines = Path(ADDS).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))


def test_a_program_written_for_a_gpu_runs_unmodified_and_its_launches_are_counted_by_line():
    done, output = run(ADDS, "--n", 1000, "--repeat", 3)
    assert output.splitlines() == ["ran on cutegen simulator sm_80, cuda:0", "took nan us", "PASS"]
    assert (done.ending, done.exit_status, done.sentence) == (Ending.FINISHED, 0, "")
    assert (done.findings, done.not_simulated, done.sampled) == ((), "", False)
    assert done.launch_count == 3
    (launches,) = done.launches
    assert launches.profile.grid == (8, 1, 1)
    assert launches.profile.counters.gmem_load_bytes == 3 * 2 * 1000 * 4
    line = next(item for item in launches.profile.lines if item.line == line_of("c[i] ="))
    assert line.file == ADDS
    assert line.counters.gmem_bytes == 3 * 3 * 1000 * 4
    assert done.sources == {ADDS: Path(ADDS).read_text()}


def test_a_fault_is_a_finding_at_its_line_and_the_traceback_holds_the_program_s_frames_only():
    done, output = run(ADDS, "--shift", 1, "--n", 1000)
    (found,) = done.findings
    assert (found.kind, found.severity, found.line, found.file) == (
        "out-of-bounds",
        Severity.DECIDES,
        line_of("c[i] ="),
        ADDS,
    )
    assert done.decided
    assert (done.ending, done.exit_status) == (Ending.RAISED, 1)
    frames = [line for line in output.splitlines() if line.lstrip().startswith("File ")]
    assert len(frames) == 2
    assert all(ADDS in frame for frame in frames)


def test_a_read_of_memory_that_nobody_wrote_is_found_though_the_program_goes_on():
    done, _ = run(ADDS, "--fresh", "--skip-check")
    assert done.ending is Ending.FINISHED
    assert [(item.kind, item.line) for item in done.findings] == [("uninitialised-read", line_of("c[i] ="))]


def test_a_sample_of_a_grid_is_named_and_the_program_s_own_check_sees_the_rest_unwritten():
    done, output = run(ADDS, "--n", 12_800, max_ctas=4)
    assert done.launches[0].profile.ctas_run == 4
    assert done.sampled
    assert "Mismatched elements: 12288 / 12800" in output
    assert done.ending is Ending.RAISED


@pytest.mark.parametrize(
    ("text", "ending", "status", "said"),
    [
        ("import sys; print(sys.argv[1:]); sys.exit(7)", Ending.EXITED, 7, "status 7"),
        ("raise SystemExit('enough')", Ending.EXITED, 1, "enough"),
        ("import os; os._exit(5)", Ending.EXITED, 5, "status 5"),
        ("import ctypes; ctypes.string_at(0)", Ending.KILLED, 139, "SIGSEGV"),
        ("x = bytearray(1 << 50)", Ending.RAISED, 1, "ran out of this machine's memory"),
        ("import torch; torch.zeros(1 << 46, device='cuda')", Ending.RAISED, 1, "memory at program.py:1"),
        ("import torch\ntorch.cuda.graph(None)", Ending.RAISED, 1, "could not be answered"),
        ("def f():\n    return {}['key']\nf()", Ending.RAISED, 1, "KeyError: 'key' at program.py:2"),
    ],
)
def test_each_way_to_end_has_its_status_and_a_sentence(tmp_path, text, ending, status, said):
    done, _ = run_text(tmp_path, text)
    assert (done.ending, done.exit_status) == (ending, status)
    assert said in done.sentence
    assert "\n" not in done.sentence


def test_what_the_simulator_does_not_answer_is_said_apart_from_findings(tmp_path):
    done, _ = run_text(tmp_path, "import torch\ntry:\n    torch.cuda.graph(None)\nfinally:\n    print('x')")
    assert "torch.cuda.graph" in done.not_simulated
    assert not done.decided


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (
            "multiprocessing.get_context('fork').Pool(1).apply(adds.main)",
            "Processes that the program forked launched kernels",
        ),
        (
            "multiprocessing.get_context('spawn').Pool(1).apply(torch.zeros, (3,), {'device': 'cuda'})",
            "main thread of the program's own process only",
        ),
        (
            "ThreadPoolExecutor().submit(torch.zeros, 3, device='cuda').result()",
            "main thread of the program's own process only",
        ),
    ],
)
def test_what_another_process_or_thread_does_is_said_to_be_outside_the_report(tmp_path, work, said):
    done, _ = run_text(
        tmp_path,
        f"""
import multiprocessing, sys, torch
from concurrent.futures import ThreadPoolExecutor
sys.path.insert(0, {str(PROGRAMS)!r})
sys.argv = ['x']
import adds
if __name__ == "__main__":
    {work}
""",
    )
    assert said in done.not_simulated
    assert not done.launches


def test_launches_before_a_crash_are_kept(tmp_path):
    text = f"import sys; sys.argv = ['a']; sys.path.insert(0, {str(PROGRAMS)!r})\n"
    text += "import adds; adds.main()\nimport ctypes; ctypes.string_at(0)"
    done, output = run_text(tmp_path, text)
    assert "PASS" in output
    assert done.ending is Ending.KILLED
    assert done.launch_count == 1
    assert ADDS in done.sources


def test_a_deadline_ends_an_endless_program_and_its_children(tmp_path):
    text = "import os, subprocess\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\n"
    done, output = run_text(tmp_path, text + "while True: pass", deadline_s=4)
    assert (done.ending, done.exit_status) == (Ending.TIMED_OUT, 124)
    assert "after 4 s" in done.sentence
    child = Path(f"/proc/{output.split()[0]}/stat")
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"


def test_the_program_is_main_in_its_own_folder_with_its_own_arguments_and_no_input(tmp_path):
    (tmp_path / "beside.py").write_text("import sys\nhere = sys.argv\n")
    text = (
        "import sys, os, beside, __main__, pickle, atexit, threading\n"
        "class Mine: pass\n"
        "assert __name__ == '__main__' and __main__.Mine is Mine and pickle.loads(pickle.dumps(Mine)) is Mine\n"
        "assert __file__ == os.path.abspath('program.py') and sys.path[0] == os.path.dirname(__file__)\n"
        "assert not any(path.endswith('cutegen_nb') for path in sys.path)\n"
        "assert sys.argv == beside.here == ['program.py', '--json', '-x', '--', 'y'], sys.argv\n"
        "assert sys.stdin.read() == ''\n"
        "atexit.register(print, 'at its end')\n"
        "threading.Timer(0.2, print, ['in a thread']).start()\n"
    )
    (tmp_path / "program.py").write_text(text)
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        done, output = run("program.py", "--json", "-x", "--", "y")
    finally:
        os.chdir(before)
    assert output.splitlines() == ["in a thread", "at its end"]
    assert (done.ending, done.exit_status, done.launch_count) == (Ending.FINISHED, 0, 0)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"def f(:\n", "is not a Python program: invalid syntax at line 1"),
        (b"\x7fELF\x00\x00", "is not a Python program"),
        (b"x = '\xff'\n", "is not a Python program"),
        (b"(" * 5000, "is not a Python program"),
    ],
)
def test_what_is_not_python_is_refused_before_anything_runs(tmp_path, content, said):
    path = tmp_path / "thing.py"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=said) as caught:
        run(path)
    assert "\n" not in str(caught.value)


def test_a_missing_program_and_a_folder_are_refused(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.py: No such file"):
        run(tmp_path / "nothing.py")
    with pytest.raises(UsageError, match="Is a directory"):
        run(tmp_path)


def test_an_unknown_architecture_is_refused():
    with pytest.raises(ConfigurationError, match="sm_42"):
        run(ADDS, architecture="sm_42")


def test_frames_of_python_packages_and_ours_are_not_the_program_s():
    assert is_own(ADDS)
    assert not is_own(os.__file__)
    assert not is_own(pytest.__file__)
    assert not is_own("<string>")
    assert not is_own(sys.modules["cutegen_nb.simulator.script.traceback"].__file__)


def test_a_tensor_that_was_never_moved_stays_the_host_s_to_the_dsl():
    done, output = run(PROGRAMS / "places.py")
    places = {line.split()[0]: set(line.split()[1:]) for line in output.splitlines()}
    assert places.pop("host") == {"generic"}, output
    assert set(places) == {"moved", "made", "with", "default"}
    assert all(found == {"gmem"} for found in places.values()), output
    assert done.ending is Ending.FINISHED
