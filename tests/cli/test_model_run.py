"""The whole way once: a profile, a model server over HTTP, the simulator, the store and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.testing.model_server import ModelServer, answers, refuses

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]
GPU_TESTS = Path(__file__).parents[1] / "evaluator"
KERNEL = (GPU_TESTS / "candidates" / "relu.py").read_text()
REPLY = f"Rationale: one thread an element.\nPredicted effect: none.\n```python\n{KERNEL}```\n"
KEY = "sk-secret-0123456789"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("run")
    (made / "relu.py").write_text((GPU_TESTS / "problems" / "relu.py").read_text())
    return made


def run(folder: Path, server: ModelServer, monkeypatch, *more: str) -> int:
    (folder / "config.toml").write_text(
        f'[profile.mine]\nbase_url = "{server.url}"\nmodel = "small-coder"\nkey_variable = "MY_KEY"\n'
        "[profile.mine.limits]\nretries = 0\n[profile.mine.price]\ninput = 1\noutput = 2\n"
    )
    monkeypatch.setenv("CUTEGEN_CONFIG", str(folder / "config.toml"))
    monkeypatch.setenv("MY_KEY", KEY)
    arguments = ["--profile", "mine", "--device", "simulator", "--store", str(folder / ".cutegen"), "--json"]
    return main(["run", str(folder / "relu.py"), *arguments, *more])


class TestOneSession:
    """In order, on one store."""

    def test_a_model_s_kernel_is_judged_and_kept_with_its_cost(self, folder, monkeypatch, capsys):
        with ModelServer([answers("I would tile it."), answers(REPLY)]) as server:
            assert run(folder, server, monkeypatch, "--rounds", "1") == 0
        told = capsys.readouterr()
        found = json.loads(told.out)
        assert "2,400 tokens (1,200 cached, 100 reasoning), $0.0028]" in told.err
        assert found["rounds"][0]["usage"]["cost_usd"] == pytest.approx(0.0028)
        assert found["rounds"][0]["verdict"] == "PASSED"
        assert "holds no code" in server.requests[1]["messages"][1]["content"]
        assert server.requests[0]["messages"][1]["content"].count("torch.relu(x)") >= 1

    @pytest.mark.parametrize(
        ("behaviour", "words"),
        [
            (
                refuses(401, "Incorrect API key provided: sk-se***789"),
                "refused the key (HTTP 401: Incorrect API key provided: …): check MY_KEY",
            ),
            (refuses(404, "no such model"), "the model is there, so the address or api"),
            (refuses(429, "You exceeded your quota", code="insufficient_quota"), "has no quota left"),
            (refuses(503, "loading"), "failed (HTTP 503: loading): run the same command again later"),
        ],
    )
    def test_what_the_server_refuses_is_one_sentence_in_the_terminal(
        self, folder, monkeypatch, capsys, behaviour, words
    ):
        with ModelServer([behaviour]) as server:
            assert run(folder, server, monkeypatch, "--rounds", "2") == 0, "the kernel of before stands"
        told = capsys.readouterr()
        found = json.loads(told.out)
        assert words in found["stopped"]
        assert words in told.err
        assert KEY not in told.err + told.out
        assert found["best"]

    def test_it_is_resumed_by_its_name_with_the_profile_of_before(self, folder, monkeypatch, capsys):
        monkeypatch.setenv("MY_KEY", KEY)
        monkeypatch.setenv("CUTEGEN_CONFIG", str(folder / "config.toml"))
        store = str(folder / ".cutegen")
        with ModelServer([answers(REPLY)]) as server:
            again = ["resume", "relu", "--store", store, "--base-url", server.url, "--rounds", "9", "--json"]
            assert main(again) == 0
            assert server.requests[0]["model"] == "small-coder"
        assert main(["replay", "relu", "--store", store]) == 0
        assert main(["resume", "relu_replay", "--store", store]) == 2
        assert "relu_replay is a replay and nothing more of it is recorded" in capsys.readouterr().err

    def test_the_session_is_replayed_with_where_and_when(self, folder, capsys):
        assert main(["replay", "relu", "--store", str(folder / ".cutegen")]) == 0
        told = capsys.readouterr()
        assert "written by mine:small-coder: nothing runs now" in told.err
        assert "relu, recorded from 20" in told.err
