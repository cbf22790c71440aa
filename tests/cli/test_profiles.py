from __future__ import annotations

import json

import pytest

from cutegen_nb.cli import main
from cutegen_nb.testing.model_server import ModelServer, answers, refuses

KEY = "sk-secret-0123456789"


@pytest.fixture
def config(tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    monkeypatch.setenv("CUTEGEN_CONFIG", str(path))
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.delenv("OTHER_KEY", raising=False)
    return path


def profile(name: str, url: str, key_variable: str = "MY_KEY") -> str:
    return f'[profile.{name}]\nbase_url = "{url}"\nmodel = "small-coder"\nkey_variable = "{key_variable}"\n'


def test_without_a_file_an_example_and_its_place_are_shown(config, capsys):
    assert main(["profiles"]) == 0
    said = capsys.readouterr().out
    assert str(config) in said
    assert "[profile.local]" in said


def test_profiles_are_listed_with_the_state_of_their_key_and_never_the_key(config, capsys):
    config.write_text(
        profile("mine", "https://x.example/v1")
        + "[profile.mine.price]\ninput = 1.5\noutput = 6\nas_of = 2026-11-01\n"
        + profile("other", "https://y.example/v1", "OTHER_KEY")
        + profile("local", "http://localhost:1/v1", "")
    )
    assert main(["profiles"]) == 0
    said = capsys.readouterr().out
    for words in ("MY_KEY is set", "OTHER_KEY is not set", "needs none", "$1.5 / $6 a million, 2026-11-01"):
        assert words in said
    assert main(["profiles", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["profiles"]
    assert [item["key_is_set"] for item in found] == [True, False, False]
    assert KEY not in said + json.dumps(found)


def test_checking_makes_one_tiny_request_and_says_what_came(config, capsys):
    with ModelServer([answers("ready", reasoning="hm")]) as server:
        config.write_text(profile("mine", server.url) + "[profile.mine.price]\ninput = 1\noutput = 2\n")
        assert main(["profiles", "check", "mine"]) == 0
    said = capsys.readouterr().out
    assert "'ready', ended as 'stop'" in said
    assert "1,000 in, 200 out (counted by the server); $0.001400" in said
    assert "kept apart" in said
    assert len(server.requests) == 1
    assert server.requests[0]["max_tokens"] == 2048
    assert server.keys == [f"Bearer {KEY}"]


def test_a_check_that_fails_says_why_in_one_sentence(config, capsys):
    with ModelServer([refuses(401, f"no such key {KEY}")]) as server:
        config.write_text(profile("mine", server.url))
        assert main(["profiles", "check", "mine"]) == 1
        said = capsys.readouterr().out
        assert "refused the key (HTTP 401: no such key …): check MY_KEY in the environment" in said
        assert KEY not in said
        assert main(["profiles", "check", "mine", "--json"]) == 1
        assert json.loads(capsys.readouterr().out)["fine"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["profiles", "check"], "check needs the name of a profile"),
        (["profiles", "check", "min"], "did you mean mine?"),
        (["run", "relu.py", "--profile", "min"], "did you mean mine?"),
        (["run", "relu.py", "--profile", "other"], "OTHER_KEY is not set"),
        (["run", "relu.py", "--profile", "mine", "--author", "manual"], "give one of the two"),
    ],
)
def test_wrong_use_is_one_sentence(config, capsys, arguments, words):
    arguments = [str(config.with_name(word)) if word.endswith(".py") else word for word in arguments]
    config.with_name("relu.py").write_text(
        "import torch\n\n\ndef relu(x):\n    return torch.relu(x)\n\n\ndef get_inputs():\n"
        "    return [torch.randn(8)]\n"
    )
    config.write_text(
        profile("mine", "https://x.example/v1") + profile("other", "https://y.example/v1", "OTHER_KEY")
    )
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
