"""Options of the command line as settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_nb.app.budgets import budget_of, plan_of
from cutegen_nb.cli.main import parse
from cutegen_nb.cli.settings import read_source, settings_of
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.session import Plan, Schedule
from cutegen_nb.wiring import DEFAULT_FOLDER, make_history


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("--target A100", "target", "A100"),
        ("", "target", ""),
        ("--workers 4", "workers", 4),
        ("", "workers", 1),
        ("--ray 10.0.0.5:6379", "ray", "10.0.0.5:6379"),
        ("--no-history", "history", False),
        ("", "history", True),
        ("--store other", "folder", Path("other")),
        ("", "folder", DEFAULT_FOLDER),
        ("--prompts mine", "prompts", Path("mine")),
        ("--baseline eager --baseline eager", "baselines", ("eager",)),
        ("", "baselines", ("eager", "torch.compile")),
        ("--author manual --policy ask", "policy", "ask"),
    ],
)
def test_an_option_reaches_its_setting(words, name, value):
    assert getattr(settings_of(parse(["run", "relu.py", *words.split()])), name) == value


def test_without_a_history_nothing_is_used_or_learnt():
    without = settings_of(parse(["demo", "--no-history"]))
    used = settings_of(parse(["demo"]))

    assert make_history(without, print) is None
    assert make_history(used, print) is not None


def test_a_command_without_an_option_takes_its_default():
    settings = settings_of(parse(["sessions"]))

    assert (settings.author, settings.device, settings.workers, settings.history) == (
        "offline",
        "auto",
        1,
        True,
    )


def test_the_key_is_read_from_the_environment_and_never_shown(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    settings = settings_of(parse(["run", "relu.py", "--author", "openai", "--model", "m"]))

    assert settings.key == "sk-secret-0123456789"
    assert "sk-secret" not in repr(settings)


@pytest.mark.parametrize(
    ("words", "rounds", "epochs", "population"),
    [
        ("", 6, None, 1),
        ("--rounds 9", 9, None, 1),
        ("--population 3", 15, 4, 3),
        ("--population 3 --epochs 2", 9, 2, 3),
        ("--population 3 --epochs 2 --rounds 5", 5, 2, 3),
    ],
)
def test_a_population_has_as_many_rounds_as_its_epochs_need(words, rounds, epochs, population):
    options = parse(["run", "relu.py", *words.split()])
    budget = budget_of(options, options.rounds)

    assert (budget.rounds, budget.epochs) == (rounds, epochs)
    assert plan_of(options)(Plan()).population == population


@pytest.mark.parametrize("schedule", Schedule)
def test_every_schedule_reaches_the_plan(schedule):
    options = parse(["run", "relu.py", "--schedule", schedule.value])

    assert plan_of(options)(Plan()).schedule is schedule


def test_a_kernel_file_that_cannot_be_read_is_one_sentence(tmp_path):
    (tmp_path / "bytes.py").write_bytes(b"ab\xff")
    for path, sentence in (
        (tmp_path / "no.py", "No such file or directory; give the path of a file with ModelNew"),
        (tmp_path, "Is a directory"),
        (tmp_path / "bytes.py", "is not text in UTF-8: byte 2 is 0xff"),
    ):
        with pytest.raises(UsageError, match=sentence):
            read_source(str(path))
