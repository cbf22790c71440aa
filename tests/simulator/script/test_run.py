"""Whole programs in processes of their own: what they find, how they end, and what is known of them after."""

import asyncio
import os
from pathlib import Path

import pytest

from cutegen_nb.core.errors import ConfigurationError, UsageError
from cutegen_nb.core.finding import Severity
from cutegen_nb.core.simulation import Ending
from cutegen_nb.simulator.script import run as script_run
from cutegen_nb.simulator.script.run import Script, Streams, run_program

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parents[1] / "script_programs"
ADDS = str(PROGRAMS / "adds.py")


def run(script, *arguments, environment=os.environ, **how):
    """Run a program; return its result and its output."""
    output = bytearray()
    streams = Streams(stdin=asyncio.subprocess.DEVNULL, on_output=output.extend)
    program = Script(script=str(script), arguments=tuple(map(str, arguments)), **how)
    done = asyncio.run(run_program(program, streams, environment=environment))
    return done, output.decode()


def run_text(tmp_path, text, *arguments, **how):
    path = tmp_path / "program.py"
    path.write_text(text)
    return run(path, *arguments, **how)


def line_of(beginning):
    lines = Path(ADDS).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))


# By the command line these two run in `make test`: tests/cli/test_simulate.py.
@pytest.mark.long
def test_a_program_written_for_a_gpu_runs_unmodified_and_its_launches_are_counted_by_line():
    done, output = run(ADDS, "--n", 1000, "--repeat", 3)
    assert output.splitlines() == ["ran on cutegen simulator sm_80, cuda:0", "took 999999.00 us", "PASS"]
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_sample_of_a_grid_is_named_and_the_program_s_own_check_sees_the_rest_unwritten():
    done, output = run(ADDS, "--n", 12_800, max_ctas=4)
    assert done.launches[0].profile.ctas_run == 4
    assert done.sampled
    assert "Mismatched elements: 12288 / 12800" in output
    assert done.ending is Ending.RAISED


@pytest.mark.long
def test_launches_and_findings_before_a_crash_are_kept(tmp_path):
    """One of them a read of memory that nobody wrote, which lets a program go on."""
    text = f"""
import ctypes, sys
sys.path.insert(0, {str(PROGRAMS)!r})
import adds
for words in ([], ["--fresh", "--skip-check"]):
    sys.argv = ["adds.py", *words]
    adds.main()
ctypes.string_at(0)
"""
    done, output = run_text(tmp_path, text)
    assert "PASS" in output
    assert (done.ending, done.exit_status) == (Ending.KILLED, 139)
    assert "SIGSEGV" in done.sentence
    assert done.launch_count == 2
    assert [(item.kind, item.line) for item in done.findings] == [("uninitialised-read", line_of("c[i] ="))]
    assert ADDS in done.sources


@pytest.mark.long
def test_a_message_for_exit_is_printed_and_a_caught_refusal_stays_in_the_report(tmp_path):
    text = "import torch\ntry:\n    torch.cuda.cudart()\nexcept Exception:\n    raise SystemExit('enough') from None"
    done, output = run_text(tmp_path, text)
    assert output.splitlines() == ["enough"]
    assert (done.ending, done.exit_status) == (Ending.EXITED, 1)
    assert done.sentence == "The program ended itself: enough"
    assert done.not_simulated == (
        "The program called torch.cuda.cudart, which the simulator does not answer; launch kernels on torch "
        "tensors instead, or evaluate on a GPU."
    )
    assert not done.decided


@pytest.mark.long
def test_an_exit_past_python_s_own_end_has_its_status(tmp_path):
    done, _ = run_text(tmp_path, "import os; os._exit(5)")
    assert (done.ending, done.exit_status) == (Ending.EXITED, 5)
    assert "past Python's own end (status 5)" in done.sentence


@pytest.mark.long
def test_a_size_meant_for_a_large_gpu_ends_the_program_and_not_the_machine(tmp_path):
    done, _ = run_text(tmp_path, "import torch; torch.zeros(1 << 46, device='cuda')")
    assert (done.ending, done.exit_status) == (Ending.RAISED, 1)
    assert done.sentence.startswith("The program ran out of this machine's memory at program.py:1: ")


@pytest.mark.long
@pytest.mark.first(1)
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
    ids=["fork", "spawn", "thread"],
)
def test_what_another_process_or_thread_does_is_said_to_be_outside_the_report(tmp_path, work, said):
    done, _ = run_text(
        tmp_path,
        f"""
import multiprocessing, sys, torch
from concurrent.futures import ThreadPoolExecutor
sys.path.insert(0, {str(PROGRAMS)!r})
sys.argv = ['x']
if __name__ == "__main__":
    import adds
    {work}
""",
    )
    assert said in done.not_simulated
    assert not done.launches


@pytest.mark.long
def test_an_exit_after_a_process_that_was_spawned_says_that_it_had_no_gpu(tmp_path):
    """As in test suites that run each kernel in a process of its own and report its error as text."""
    done, output = run_text(
        tmp_path,
        """
import multiprocessing, sys, torch
def work(queue):
    try:
        torch.zeros(3, device='cuda')
    except Exception as error:
        queue.put(str(error))
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    context.Process(target=work, args=(queue,)).start()
    print(queue.get())
    sys.exit(1)
""",
    )
    assert "CUDA" in output
    assert done.sentence.startswith("The program ended itself with status 1. It had started processes with ")
    assert done.sentence.endswith("Launch from the program's own process, with one worker or none.")


@pytest.mark.long
def test_a_deadline_ends_an_endless_program_and_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(script_run, "_GRACE_S", 0.5)
    text = "import os, subprocess\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\n"
    for deadline_s in (10, 100):  # a busy machine may need longer to reach the program's first line
        done, output = run_text(tmp_path, text + "import time; time.sleep(600)", deadline_s=deadline_s)
        assert (done.ending, done.exit_status) == (Ending.TIMED_OUT, 124)
        assert f"after {deadline_s} s" in done.sentence
        if output:
            break
    child = Path(f"/proc/{output.split()[0]}/stat")
    assert not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z"


def test_the_program_is_main_in_its_own_folder_with_its_own_arguments_environment_and_no_input(
    tmp_path, monkeypatch
):
    (tmp_path / "beside.py").write_text("import sys\nhere = sys.argv\n")
    text = (
        "import sys, os, beside, __main__, pickle, atexit, threading, gc\n"
        "class Mine: pass\n"
        "assert __name__ == '__main__' and __main__.Mine is Mine and pickle.loads(pickle.dumps(Mine)) is Mine\n"
        "assert __file__ == os.path.abspath('program.py') and sys.path[0] == os.path.dirname(__file__)\n"
        "assert not any(path.endswith('cutegen_nb') for path in sys.path)\n"
        "assert sys.argv == beside.here == ['program.py', '--json', '-x', '--', 'y'], sys.argv\n"
        "assert sys.stdin.read() == '' and gc.isenabled()\n"
        "assert os.environ['CUTE_DSL_ENABLE_TVM_FFI'] == '1'\n"
        "atexit.register(print, 'at its end')\n"
        "threading.Timer(0.2, print, ['in a thread']).start()\n"
        "sys.exit(7)\n"
    )
    (tmp_path / "program.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "CUTE_DSL_ENABLE_TVM_FFI": "1"}
    done, output = run("program.py", "--json", "-x", "--", "y", environment=environment)
    assert output.splitlines() == ["in a thread", "at its end"]
    assert (done.ending, done.exit_status, done.launch_count) == (Ending.EXITED, 7, 0)
    assert done.sentence == "The program ended itself with status 7."


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


@pytest.mark.long
def test_a_tensor_that_was_never_moved_stays_the_host_s_to_the_dsl():
    done, output = run(PROGRAMS / "places.py")
    places = {line.split()[0]: set(line.split()[1:]) for line in output.splitlines()}
    assert places.pop("host") == {"generic"}, output
    assert set(places) == {"moved", "made", "with", "default"}
    assert all(found == {"gmem"} for found in places.values()), output
    assert done.ending is Ending.FINISHED


@pytest.mark.long
def test_a_module_runs_as_by_python_m_and_imports_its_siblings(tmp_path, monkeypatch):
    package = tmp_path / "layers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "sizes.py").write_text("COUNT = 64\n")
    text = (
        Path(ADDS).read_text().replace("import argparse\n", "import argparse\nfrom .sizes import COUNT\n", 1)
    )
    assert "COUNT" in text
    (package / "adds.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    done, output = run("layers.adds", "--n", 1000, is_module=True)
    assert (done.ending, done.launch_count) == (Ending.FINISHED, 1), output
    assert str(package / "adds.py") in done.sources


@pytest.mark.parametrize(
    ("name", "said"),
    [("nobody.here", "No module named 'nobody'"), ("nobody.py", "Try using 'nobody' instead")],
)
@pytest.mark.long
def test_a_module_that_is_not_there_is_named(name, said):
    done, _ = run(name, is_module=True)
    assert (done.ending, done.exit_status) == (Ending.RAISED, 1)
    assert said in done.sentence


def test_a_path_in_place_of_a_module_is_refused():
    with pytest.raises(UsageError, match=r"folder/program\.py is not the name of a module; name a file"):
        run("folder/program.py", is_module=True)


@pytest.mark.long
def test_a_test_suite_that_fails_ends_with_its_own_words(tmp_path, monkeypatch):
    """Pytest keeps the frames of the failure, and so the patches of torch, until Python shuts down."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "test_sum.py").write_text("def test_sum():\n    assert 1 + 1 == 3\n")
    done, output = run("pytest", "-q", "-p", "no:cacheprovider", "test_sum.py", is_module=True)
    assert (done.ending, done.exit_status) == (Ending.EXITED, 1)
    assert "Exception ignored" not in output
    assert "1 failed" in output
