"""Help and commands, and one sentence with status 2 for a wrong command line, a missing file or a missing key."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.app.commands import command_line_commands
from cutegen_nb.cli import main
from cutegen_nb.cli.commands import _announce, _say_ignored
from cutegen_nb.cli.main import HANDLERS, Interrupts, parse
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.wiring import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CUTEGEN_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(examples.RELU_SOURCE)
    return str(path)


def fails(capsys, *arguments: str) -> str:
    """The one sentence on stderr of a command line that is refused."""
    try:
        status = main(arguments)
    except SystemExit as end:
        status = end.code
    out, err = capsys.readouterr()
    assert status == 2, (out, err)
    assert out == ""
    lines = [line for line in err.splitlines() if line]
    assert len(lines) == 1, err
    assert lines[0].startswith("cutegen-nb: error: ")
    return lines[0]


def test_an_unknown_option_is_answered_with_the_nearest(capsys, problem):
    assert "--rounds" in fails(capsys, "run", problem, "--round", "3")
    assert "did you mean --policy?" in fails(capsys, "run", problem, "--polcy=ask")


def test_an_unknown_command_is_answered_with_the_nearest(capsys):
    assert "did you mean report?" in fails(capsys, "reprot")


def test_an_unknown_author_or_device_lists_the_known(capsys, problem):
    assert "offline" in fails(capsys, "run", problem, "--author", "gpt")
    assert "simulator" in fails(capsys, "run", problem, "--device", "tpu")


@pytest.mark.parametrize("rounds", ["0", "-1", "many", "1.5"])
def test_a_number_of_rounds_is_a_whole_number_from_one(capsys, problem, rounds):
    assert "whole number from 1" in fails(capsys, "run", problem, f"--rounds={rounds}")


def test_a_problem_that_is_not_there_or_does_not_parse_is_named(capsys, tmp_path):
    assert "nowhere.py" in fails(capsys, "run", "nowhere.py")
    (tmp_path / "broken.py").write_text("def get_inputs(:\n")
    assert "broken.py" in fails(capsys, "run", "broken.py")
    assert str(tmp_path) in fails(capsys, "run", str(tmp_path))


def test_a_candidate_that_is_not_there_or_not_text_is_named(capsys, problem, tmp_path):
    assert "nothing.py" in fails(capsys, "evaluate", problem, "nothing.py")
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    assert "UTF-8" in fails(capsys, "evaluate", problem, "bytes.py")


def test_a_name_that_is_no_identifier_is_refused(capsys, problem):
    assert "identifier" in fails(capsys, "run", problem, "--name", "my-relu")


def test_a_missing_key_is_said_before_anything_starts(capsys, problem):
    assert "OPENAI_API_KEY is not set" in fails(capsys, "run", problem, "--author", "openai", "--model", "m")
    assert not Path(".cutegen").exists()


def test_a_missing_model_is_said(capsys, problem):
    sentence = fails(capsys, "run", problem, "--author", "openai", "--base-url", "http://localhost:1/v1")
    assert "CUTEGEN_MODEL" in sentence


def test_a_store_that_cannot_be_made_is_said(capsys, problem, tmp_path):
    (tmp_path / "file").write_text("x")
    assert "--store" in fails(capsys, "run", problem, "--store", "file/in/it")


def test_listing_or_reporting_nothing_says_how_to_make_something(capsys):
    assert "cutegen-nb demo" in fails(capsys, "sessions")
    SqliteStore(Path(".cutegen")).close()
    assert "no session 'x'" in fails(capsys, "report", "x", "-o", "x.html")


def test_all_sessions_are_written_as_a_page(capsys):
    with SqliteStore(Path(".cutegen")) as store:
        store.create(examples.session_of(Relation.FIRST, name="gelu"))
    assert main(["sessions", "--html", "all.html"]) == 0
    assert capsys.readouterr().out == "sessions: all.html\n"
    assert "<span>gelu</span>" in Path("all.html").read_text()
    assert "leave gelu out" in fails(capsys, "sessions", "gelu", "--html", "all.html")
    assert "does not end in .html" in fails(capsys, "sessions", "--html", "all.txt")
    assert "none does not exist" in fails(capsys, "sessions", "--html", "none/all.html")


def test_a_second_writer_is_refused_by_name(capsys, problem):
    with SqliteStore(Path(".cutegen")):
        assert f"process {os.getpid()}" in fails(capsys, "run", problem)


def test_an_empty_store_lists_no_sessions(capsys):
    SqliteStore(Path(".cutegen")).close()
    assert main(["sessions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


EVERYDAY = [
    "demo",
    "run",
    "sessions",
    "report",
    "resume",
    "export",
    "campaign",
    "evaluate",
    "simulate",
    "profile",
    "doctor",
]
"""Commands that `--help` lists."""


def test_the_help_lists_the_everyday_commands_and_names_dev_for_the_others(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    text = capsys.readouterr().out

    assert end.value.code == 0
    assert re.findall(r"^    ([a-z]+)  +[A-Z]", text, re.MULTILINE) == [*EVERYDAY, "dev"]
    assert "exit status: 0 it passed; 1 nothing did; 2 wrong use" in " ".join(text.split())


def test_dev_lists_every_other_command_with_its_summary(capsys):
    with pytest.raises(SystemExit) as end:
        main(["dev"])
    listed = re.findall(r"^  ([a-z]+)  +([A-Z].*)$", capsys.readouterr().out, re.MULTILINE)

    assert end.value.code == 0
    assert dict(listed) == {
        item.name: item.summary for item in command_line_commands() if item.name not in EVERYDAY
    }


def test_the_word_dev_may_be_left_out(capsys):
    told = []
    for words in (["checks", "--json"], ["dev", "checks", "--json"]):
        assert main(words) == 0
        told.append(capsys.readouterr().out)

    assert told[0] == told[1]


def test_every_command_has_a_handler_and_every_handler_a_command():
    assert set(HANDLERS) == {item.name for item in command_line_commands()}


@pytest.mark.parametrize("item", command_line_commands(), ids=lambda item: item.name)
def test_every_command_has_a_help_with_an_example_and_json(capsys, item):
    with pytest.raises(SystemExit) as end:
        main([item.name, "--help"])
    text = " ".join(capsys.readouterr().out.split())

    assert end.value.code == 0
    assert (f"example: cutegen-nb {item.name}" in text) or item.name == "simulate"
    assert "--json" in text
    assert "SUPPRESS" not in text


REFUSED: list[tuple[str, str]] = [
    # A problem that states none.
    ("run nowhere.py", "nowhere.py does not exist; give the path of a problem file"),
    ("run bare.py", "bare.py defines the function relu but neither get_inputs nor example_inputs; add a function get_inputs that returns the list of relu's arguments"),
    ("run model.py", "model.py defines Model but no get_inputs; add a function get_inputs that returns the list of tensors Model.forward takes"),
    ("run two.py", "two.py defines 2 functions (a, b) and does not say which is the reference; name that one reference, or start the names of the others with an underscore"),
    ("run none.py", "none.py defines neither a class Model nor a function; write the reference as a torch.nn.Module named Model, or as a function, with get_inputs beside it"),
    ("run broken.py", "broken.py does not parse: invalid syntax at line 1 (`def get_inputs(:`); correct that line"),
    ("run bytes.py", "bytes.py is not UTF-8 text (byte 0 is 0xff); save it as UTF-8"),
    ("run folder", "folder is a directory; give a problem file, or the folder to `cutegen-nb campaign`"),
    ("problem broken.py", "broken.py does not parse: invalid syntax at line 1 (`def get_inputs(:`); correct that line"),
    ("strategies --problem nowhere.py", "nowhere.py does not exist; give the path of a problem file"),
    # A value that an option does not take.
    ("run relu.py --target H20", "no data sheet is known for the GPU 'H20'; known are A100 80GB PCIe, A100-SXM4-40GB, A100-PCIE-40GB, A100, H100 PCIe, H100, H200, B200, L4, RTX 3090, RTX 4090, RTX 5090"),
    ("run relu.py --library convs", "argument --library: 'convs' is no part that can be left to PyTorch: give conv, matmul, attention, norm or pool; did you mean conv?; see `cutegen-nb run --help`"),
    ("run relu.py --population 0", "argument --population: '0' is not a number: give a whole number from 1; see `cutegen-nb run --help`"),
    ("run relu.py --epochs two", "argument --epochs: 'two' is not a number: give a whole number from 1; see `cutegen-nb run --help`"),
    ("demo --workers 0", "argument --workers: '0' is not a number of workers: give a whole number from 1; see `cutegen-nb demo --help`"),
    ("run relu.py --minutes nan", "argument --minutes: 'nan' is not an amount: give a number above 0; see `cutegen-nb run --help`"),
    ("run", "the following arguments are required: PROBLEM.py; see `cutegen-nb run --help`"),
    ("evaluate --batch jobs -o results --library conv", "--library is for one kernel: each job of --batch says what its session allows"),
    ("evaluate --batch none.jsonl -o r.jsonl", "cannot read none.jsonl: No such file or directory; give the path of a file of lines"),
    ("prompt relu.py --library conv --session relu", "--library is a part of a stored session already: give it with PROBLEM.py alone"),
    ("layout nonsense -o x.svg", "'nonsense' is no layout of known numbers; write one such as (8,(2,4)):(8,(1,2)) or S<3,4,3> o 0 o (8,64):(64,1)."),
    ("exploits --only nobody", "there is no exploit 'nobody'; `cutegen-nb exploits --list` names them all"),
    ("diff r0 r1", "there is no command 'diff': `%cutegen diff` is of the notebook; see `cutegen-nb --help`"),
    ("dev chekcs", "there is no command 'chekcs'; did you mean checks?; see `cutegen-nb --help`"),
    # A session or a file that is not there or damaged.
    ("resume nobody", "no session 'nobody' in .cutegen/sessions.sqlite: there is relu"),
    ("resume --store nowhere", "no sessions in nowhere: `cutegen-nb demo` makes one, --store looks elsewhere"),
    ("sessions nobody", "no session 'nobody' in .cutegen/sessions.sqlite: there is relu"),
    ("population nobody", "no session 'nobody' in .cutegen/sessions.sqlite: there is relu"),
    ("prompt --session nobody", "no session 'nobody' in .cutegen/sessions.sqlite: there is relu"),
    ("population relu --store damaged", "damaged/sessions.sqlite is not a session store or is damaged (file is not a database): restore a copy or use another --store"),
    ("sessions --store nowhere", "no sessions in nowhere: `cutegen-nb demo` makes one, --store looks elsewhere"),
    ("export nobody", "no session 'nobody' in .cutegen/sessions.sqlite: there is relu"),
    ("export relu", "no file to write: give -o relu_kernel.py (the kernel), relu.html (the report) or relu.cutegen (all of it)"),
    ("import bad.cutegen", "bad.cutegen is no bundle or is damaged (File is not a zip file); `cutegen-nb export` writes one"),
    ("replay bad.cutegen", "bad.cutegen is no bundle or is damaged (File is not a zip file); `cutegen-nb export` writes one"),
    ("report relu -o relu.txt", "-o 'relu.txt' does not end in .html, the one form a report has"),
    ("merge relu r1 r9 -o both.py", "relu has no revision 'r9': there is r0, r1, r2"),
    # Campaigns.
    ("campaign nowhere", "nowhere does not exist: give a folder of problem files, or the files"),
    ("campaign folder", "folder holds no .py file: give a folder of problem files"),
    ("campaign relu.py --only 99", "--only '99' names none of the 1 problems (relu … relu): give numbers, ranges or names, as in 19,23-26"),
    ("campaign relu.py --ablate speed=on", "'speed=on' is no ablation: give one of schedule=plateau|paper|never|start, guide=on|off, history=on|off, roofline=on|off, population=1|2|3|4|5|6|7|8"),
    ("campaign relu.py --ablate schedule=plateau", "--ablate schedule=plateau changes nothing: the campaign has this setting already; take the option away"),
    ("campaign relu.py -o page.txt", "-o 'page.txt' does not end in .html, the one form of the page"),
    ("campaign relu.py -o no/such/page.html", "The folder no/such does not exist; create it or choose another."),
    ("campaign relu.py --name a/b", "--name 'a/b' is no name of a folder: use letters, digits, - and _"),
    ("campaign relu.py --total-dollars -3", "argument --total-dollars: '-3' is not an amount: give a number above 0; see `cutegen-nb campaign --help`"),
    ("campaign relu.py --store .cutegen", ".cutegen/sessions.sqlite holds sessions of no campaign: give the campaign a --store of its own"),
    # Records of strategies.
    ("strategies vectorize", "no strategy 'vectorize'; did you mean vectorise-128?: `cutegen-nb strategies` lists them"),
    ("strategies vectorise-128 --export x.json", "NAME and --export are two requests: give one of the two"),
    ("strategies --import nowhere.json", "cannot read nowhere.json: No such file or directory"),
    ("strategies --import bad.json", "bad.json holds no strategies; `cutegen-nb strategies --export` writes such a file"),
]  # fmt: skip
"""Command lines that are refused, each with its sentence."""


@pytest.fixture
def bad_inputs(problem, tmp_path):
    """A folder with a store of one session, and files that state no problem or are damaged."""
    texts = {
        "bare.py": "def relu(x):\n    return x\n",
        "model.py": "class Model:\n    pass\n",
        "two.py": "def a(x):\n    return x\n\n\ndef b(x):\n    return x\n\n\ndef get_inputs():\n    return []\n",
        "none.py": "x = 1\n",
        "broken.py": "def get_inputs(:\n",
        "bad.cutegen": "no bundle",
        "bad.json": '{"kind": 1}',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe")
    for name in ("folder", "damaged"):
        (tmp_path / name).mkdir()
    (tmp_path / "damaged" / "sessions.sqlite").write_bytes(b"this is no database, and long enough" * 9)
    with SqliteStore(tmp_path / ".cutegen") as store:
        store.create(examples.evolved_session())


@pytest.mark.parametrize(("line", "sentence"), REFUSED, ids=[line for line, _ in REFUSED])
def test_bad_input_is_one_clear_sentence(capsys, bad_inputs, line, sentence):
    assert fails(capsys, *line.split()) == f"cutegen-nb: error: {sentence}"


@pytest.mark.parametrize(
    "line",
    [
        "run bare.py",
        "run relu.py --library convs",
        "strategies vectorize",
        "campaign nowhere",
        "population nobody",
    ],
)
def test_bad_input_is_one_json_object_with_the_same_sentence(capsys, bad_inputs, line):
    with contextlib.suppress(SystemExit):
        main([*line.split(), "--json"])
    out, err = capsys.readouterr()

    assert f"cutegen-nb: error: {json.loads(out)['error']}\n" == err


def test_no_command_prints_the_help_and_is_wrong_use(capsys):
    with pytest.raises(SystemExit) as end:
        main([])
    assert end.value.code == 2
    assert "evaluate" in capsys.readouterr().err


def test_the_doctor_never_shows_a_key(capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://user:password@localhost/v1")
    main(["doctor", "--json", "--device", "simulator"])
    text = capsys.readouterr().out
    assert "OPENAI_API_KEY set" in text
    assert "sk-secret" not in text
    assert "password" not in text
    assert {"item", "value", "fine"} == set(json.loads(text)["items"][0])


def run_python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout


def test_importing_the_package_imports_no_torch_no_ipython_and_no_sdk():
    code = "import sys, cutegen_nb; print([n for n in ('torch', 'IPython', 'openai') if n in sys.modules])"
    assert run_python(code) == "[]\n"


def test_the_command_line_imports_neither_torch_nor_what_only_some_commands_need():
    names = "('torch', 'cutlass', 'openai', 'matplotlib', 'pandas', 'numpy', 'IPython')"
    code = f"import sys, cutegen_nb.cli; print([n for n in {names} if n in sys.modules])"
    assert run_python(code) == "[]\n"


def test_what_a_command_would_not_use_is_refused_and_not_ignored(capsys, problem, tmp_path):
    (tmp_path / "kernel.py").write_text("x = 1\n")
    assert "is for --batch" in fails(capsys, "evaluate", problem, "kernel.py", "-o", "out.json")
    assert "simulate needs SCRIPT.py" in fails(capsys, "simulate")


def test_the_doctor_says_of_a_store_what_a_run_would(capsys, tmp_path):
    def told(folder: Path) -> dict[str, object]:
        main(["doctor", "--device", "simulator", "--json", "--store", str(folder)])
        items = json.loads(capsys.readouterr().out)["items"]
        return next(item for item in items if item["item"] == "sessions")

    assert told(tmp_path / "not" / "there" / "yet")["fine"]
    with SqliteStore(tmp_path / "store"):
        pass
    assert "holds 0, may be written" in told(tmp_path / "store")["value"]
    (tmp_path / "store" / "sessions.sqlite").write_bytes(b"this is no database, and long enough" * 9)
    damaged = told(tmp_path / "store")
    assert not damaged["fine"]
    assert "is not a session store or is damaged" in damaged["value"]


def test_the_doctor_names_the_profiles_or_what_is_wrong_with_their_file(capsys, tmp_path, monkeypatch):
    def told() -> dict[str, object]:
        main(["doctor", "--device", "simulator", "--json"])
        items = json.loads(capsys.readouterr().out)["items"]
        return next(item for item in items if item["item"] == "profiles")

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert "none yet" in told()["value"]
    file = tmp_path / "cutegen_nb" / "config.toml"
    file.parent.mkdir()
    file.write_text('[profile.local]\nbase_url = "http://localhost:1/v1"\nmodel = "m"\n')
    assert told()["value"].startswith("local, of ")
    file.write_text("[profile.local")
    assert (told()["fine"], "is not TOML" in told()["value"]) == (False, True)


@pytest.mark.parametrize(
    ("words", "session", "said"),
    [
        ("--epochs 3", examples.session_of(Relation.FIRST), "--epochs 3: a chain has none; --population N"),
        (
            "--epochs 3",
            examples.evolved_session(),
            "--epochs 3: relu keeps its 4; --population 2 beside it changes them",
        ),
        (
            "--workers 2",
            examples.session_of(Relation.FIRST),
            "--workers 2: a chain evaluates one kernel after the other",
        ),
        (
            "--dollars 2",
            examples.session_of(Relation.FIRST),
            "--dollars 2: a budget in dollars counts nothing: the author offline has no price",
        ),
    ],
)
def test_an_option_that_changes_nothing_is_told(words, session, said):
    out = io.StringIO()
    options = parse(["run", "relu.py", *words.split()])
    _say_ignored(session, options, Settings(workers=options.workers), Terminal(out))

    assert said in out.getvalue()


def test_a_round_that_no_author_answered_does_not_spend_the_rounds():
    session = examples.session_of(Relation.FIRST, Relation.LESS_WORK)
    first, second = session.rounds
    unanswered = replace(
        second, attempts=(replace(second.attempts[0], candidate=None, reply=None, evaluation=None),)
    )
    said = []
    for rounds in ((first, second), (first, unanswered)):
        out = io.StringIO()
        _announce(replace(session, rounds=rounds), Terminal(out))
        said.append(out.getvalue())
    assert "its 2 rounds are spent" in said[0]
    assert said[1] == "relu goes on after 2 stored rounds\n"


OPENAI = "--author openai --device simulator"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (f"run relu.py {OPENAI} --model m", "OPENAI_API_KEY is not set and https://api.openai.com/v1 asks"),
        (
            f"run relu.py {OPENAI} --base-url http://localhost:1/v1",
            "no model is named for http://localhost:1/v1",
        ),
        (
            f"run relu.py {OPENAI} --model m --base-url http://localhost:1/v1",
            "openai is not installed (No module",
        ),
        (
            f"campaign relu.py {OPENAI} --model m --base-url http://a:1/v1",
            "openai is not installed (No module",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_before_the_problem_is_traced(
    problem, monkeypatch, capsys, words, sentence
):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CUTEGEN_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "openai", None)
    monkeypatch.chdir(Path(problem).parent)
    assert sentence in fails(capsys, *words.split())


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ([0.0], ["cancel"]),
        ([0.0, 0.001, 1.9], ["cancel"]),  # a terminal and a program around this one send both
        ([0.0, 2.5], ["cancel", "end"]),
        ([5.0, 5.1, 8.0], ["cancel", "end"]),
    ],
)
def test_the_first_cancels_and_one_seconds_later_ends(times, said):
    heard, clock = [], iter(times)
    handler = Interrupts(lambda: heard.append("cancel"), lambda: heard.append("end"), lambda: next(clock))
    for _ in times:
        handler()
    assert heard == said


STUCK = """
import asyncio, sys
from cutegen_nb.cli.main import HANDLERS, main

async def stuck(options, terminal):
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("cancelled", flush=True)

sys.modules["cutegen_nb.cli.main"]._ENDING_S = 0.0
HANDLERS["checks"] = stuck
sys.exit(main(["checks"]))
"""


def test_a_command_that_does_not_end_when_it_is_cancelled_is_ended_by_the_next_interrupt():
    """A second interrupt raised KeyboardInterrupt somewhere in the loop, which could wait for ever after it."""
    with subprocess.Popen(
        [sys.executable, "-c", STUCK],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        for line in ("begun\n", "cancelled\n"):
            assert process.stdout.readline() == line
            process.send_signal(signal.SIGINT)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said == "cutegen-nb: interrupted; `cutegen-nb checks` again begins anew\n"
