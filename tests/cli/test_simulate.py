"""`cutegen-nb simulate`: the program's output and the report apart, statuses, files, wrong use."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cutegen_nb.cli.main import main

ROOT = Path(__file__).parents[2]
ADDS = ROOT / "tests" / "simulator" / "script_programs" / "adds.py"


def command(*words):
    return [sys.executable, "-W", "ignore", "-m", "cutegen_nb", "simulate", *map(str, words)]


def line_of(beginning):
    """Line of the program that begins so."""
    lines = ADDS.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith(beginning))


def simulate(*words, folder=ROOT):
    return subprocess.run(
        command(*words),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


@pytest.mark.long
@pytest.mark.slow
def test_stdout_is_the_program_s_and_the_report_goes_to_stderr_and_files(tmp_path):
    files = [tmp_path / "report.json", tmp_path / "report.html"]
    done = simulate("--json", files[0], "--html", files[1], ADDS, "--n", 1000, "--repeat", 12)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["ran on cutegen simulator sm_80, cuda:0", "took 999999.00 us", "PASS"]
    assert "12 launches were executed in full and checked: no finding" in done.stderr
    assert "A kernel was launched 12 times" in done.stderr
    has_one_name_in_every_table(done.stderr)
    assert "no kernel was timed" in done.stderr
    report = json.loads(files[0].read_text())
    assert report["source"] == "simulated counts"
    assert report["arguments"] == ["--n", "1000", "--repeat", "12"]
    assert report["launches"][0]["times"] == 12
    (launches,) = report["launches"]
    assert launches["grid"] == [8, 1, 1]
    assert launches["counters"]["gmem_load_bytes"] == 12 * 2 * 1000 * 4
    line = next(item for item in launches["lines"] if item["line"] == line_of("c[i] ="))
    assert line["file"] == str(ADDS)
    assert line["counters"]["gmem_load_bytes"] + line["counters"]["gmem_store_bytes"] == 12 * 3 * 1000 * 4
    assert (report["ending"], report["exit_status"], report["findings"]) == ("finished", 0, [])
    page = files[1].read_text()
    assert "c[i]" in page
    assert "simulated counts" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.long
@pytest.mark.slow
def test_a_finding_decides_the_status_and_json_goes_to_stdout_alone(tmp_path):
    done = simulate("--json", "-", ADDS, "--shift", 1)
    assert done.returncode == 3
    report = json.loads(done.stdout)
    (found,) = report["findings"]
    assert (found["kind"], found["line"], found["file"]) == ("out-of-bounds", line_of("c[i] ="), str(ADDS))
    assert (report["ending"], report["exit_status"]) == ("raised", 1)
    assert f"FINDING adds.py:{found['line']}" in done.stderr
    assert done.stderr.count("Traceback") == 1
    frames = [line for line in done.stderr.splitlines() if line.startswith('  File "')]
    assert len(frames) == 2
    assert all(str(ADDS) in frame for frame in frames)


@pytest.mark.slow
@pytest.mark.long
def test_what_cannot_be_simulated_gives_status_2_though_the_program_caught_it(tmp_path):
    path = tmp_path / "runtime.py"
    path.write_text(
        "import torch\nx = torch.zeros(4).cuda()\ntry:\n    torch.cuda.cudart()\nexcept Exception:\n    print('caught')\n"
    )
    done = simulate(path)
    assert (done.returncode, done.stdout) == (2, "caught\n")
    assert "torch.cuda.cudart" in done.stderr


@pytest.mark.slow
@pytest.mark.long
def test_a_program_of_another_kind_keeps_its_status_and_is_said_to_launch_nothing(tmp_path):
    path = tmp_path / "plain.py"
    path.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(9)\n")
    done = simulate("plain.py", "--arch", "x", "-h", folder=tmp_path)
    assert (done.returncode, done.stdout) == (9, "['--arch', 'x', '-h']\n")
    assert "No kernel was launched." in done.stderr


def has_one_name_in_every_table(told):
    launches, _, given = told.partition("What the compiler gave each kernel")
    (name,) = re.findall(r"12 ×  (\S+)", launches)
    assert "tensorptr" not in name
    assert re.search(rf"^{name} ", given, re.MULTILINE)


@pytest.mark.long
@pytest.mark.slow
def test_ctrl_c_goes_to_the_program_and_what_ran_is_reported(tmp_path):
    path = tmp_path / "long.py"
    path.write_text(f"import sys, time\nsys.path.insert(0, {str(ADDS.parent)!r})\nimport adds\nsys.argv = ['x']\n"
                    "adds.main()\nprint('ready', flush=True)\ntime.sleep(60)\n")  # fmt: skip
    process = subprocess.Popen(
        command(path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    while process.stdout.readline().strip() != "ready":
        assert process.poll() is None
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=55)  # the program itself would sleep for 60 s
    assert process.returncode == 130
    # It may meet the program still printing, the line before it sleeps.
    assert re.search(r"The program was interrupted at long\.py:[67]\. 1 launch was executed", said), said


@pytest.mark.slow
@pytest.mark.long
def test_a_finding_s_sentences_and_what_did_not_end_are_told_apart(tmp_path):
    (tmp_path / "early.py").write_text("raise ValueError('x')\n")
    done = simulate("early.py", folder=tmp_path)
    assert "The program raised ValueError: x at early.py:1. No kernel launch came to its end." in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "simulate needs SCRIPT.py, the program to run"),
        (["nowhere.py"], "cannot read the program nowhere.py: No such file or directory"),
        (["."], "cannot read the program .: Is a directory"),
        (["--arch", "sm_42", "x.py"], "invalid choice: 'sm_42'"),
        (["--max-ctas", "0", "x.py"], "'0' is not a number of CTAs"),
        (["--deadline", "soon", "x.py"], "'soon' is not a number of seconds above 0"),
        (["--html", "no/such/folder.html", ADDS], "The folder no/such does not exist"),
        (["--json", ".", ADDS], ". is a folder; name a file in it, such as report.json."),
        (["--jsn", "x", ADDS], "unknown argument '--jsn'; did you mean --json?"),
        (["LICENSE"], "LICENSE is not a Python program: "),
    ],
)
def test_wrong_use_gets_a_sentence_and_status_2(capsys, monkeypatch, words, said):
    monkeypatch.chdir(ROOT)
    try:
        status = main(["simulate", *map(str, words)])
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


def test_help_names_every_option_and_status(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "--help"])
    text = capsys.readouterr().out
    for word in (
        "--arch",
        "--max-ctas",
        "--deadline",
        "--json",
        "--html",
        "SCRIPT.py [its arguments]",
        "124",
    ):
        assert word in text
