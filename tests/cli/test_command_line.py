"""What a wrong command line, a missing file or a missing key gets: one sentence and status 2."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cutegen_nb.authors.server_profile import Price
from cutegen_nb.cli import main
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.wiring import no_price_reason, settings_from_environment

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


def test_a_second_writer_is_refused_by_name(capsys, problem):
    with SqliteStore(Path(".cutegen")):
        assert f"process {os.getpid()}" in fails(capsys, "run", problem)


def test_an_empty_store_lists_no_sessions(capsys):
    SqliteStore(Path(".cutegen")).close()
    assert main(["sessions", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_every_command_has_a_help_with_an_example(capsys):
    for command in ("demo", "run", "evaluate", "sessions", "report", "doctor"):
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code == 0
        text = capsys.readouterr().out
        assert f"example: cutegen-nb {command}" in " ".join(text.split())
        assert "--json" in text


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


def test_dollars_that_count_nothing_are_explained():
    unpriced = settings_from_environment(author="openai", model="m", base_url="http://localhost:1/v1")
    assert "no price of m is known" in no_price_reason(unpriced)
    assert "[profile.openai.price]" in no_price_reason(unpriced)
    price = Price(input=1.0, output=2.0)
    assert not no_price_reason(replace(unpriced, server=replace(unpriced.server, price=price)))
    assert "the author offline has no price" in no_price_reason(settings_from_environment())
