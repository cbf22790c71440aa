"""A person carries prompts to a model and replies back, and looks at the recorded session again."""

from __future__ import annotations

import json
import time
from pathlib import Path

from notebook_kernels import ROOT, Kernel, rows

from cutegen_nb.core.round import Prompt
from cutegen_nb.notebook.carrying import lacking, reply_words, short_path

PROBLEM = (ROOT / "tests/evaluator/problems/relu.py").read_text()
KERNEL = (ROOT / "tests/evaluator/candidates/relu.py").read_text()


def until(kernel: Kernel, words: str, code: str = "%cutegen status") -> str:
    deadline = time.monotonic() + 120
    while words not in (said := kernel.run(code).plain):
        assert time.monotonic() < deadline, said
        time.sleep(0.2)
    return said


class TestCarrying:
    """In order: a prompt is shown, words alone are refused, a kernel is taken, and all of it is replayed."""

    def test_the_prompt_is_shown_with_a_button_that_copies_it(self, attended: Kernel):
        line = "%%cutegen --name relu --author manual --device simulator --policy auto --rounds 1"
        ran = attended.run(f"{line}\n{PROBLEM}")
        assert ran.status == "ok", ran.error
        said = until(attended, "waiting for the reply")
        assert "copy the request from the panel or `%cutegen prompt`" in said
        assert "paste the reply there or into a cell under `%%cutegen reply`" in said
        (shown,) = attended.run("%cutegen prompt").outputs
        assert "navigator.clipboard.writeText" in shown["data"]["text/html"]
        assert "class ModelNew" in shown["data"]["text/plain"]
        assert PROBLEM.strip().splitlines()[-1] in shown["data"]["text/plain"]

    def test_a_reply_without_a_kernel_is_refused_at_once_with_what_it_lacks(self, attended: Kernel):
        ran = attended.run("%%cutegen reply\nUse tiles, I would say.")
        assert "the reply was not taken: The answer holds no code, only words" in ran.error
        assert "Taken" not in ran.text
        ran = attended.run("%%cutegen reply\n```python\ndef broken(:\n```")
        assert "the reply was not taken: " in ran.error
        assert "waiting for the reply" in attended.run("%cutegen status").text

    def test_a_reply_with_a_kernel_ends_the_round(self, attended: Kernel):
        attended.run(f"%%cutegen reply\nRationale: one thread an element.\n```python\n{KERNEL}```")
        until(attended, "ended: ")
        (body,) = (json.loads(row) for row in rows(attended.folder))
        (attempt,) = body["attempts"]
        assert attempt["candidate"]["source"].strip() == KERNEL.strip()
        assert attempt["evaluation"]["outcome"]["verdict"] == "PASSED"

    def test_a_reply_that_nobody_waits_for_is_refused_in_a_sentence(self, attended: Kernel):
        ran = attended.run("%%cutegen reply\nanything")
        assert "relu waits for no reply now" in ran.error
        assert "waits for nobody's answer" in attended.run("%cutegen prompt").error

    def test_the_recorded_session_is_shown_again(self, attended: Kernel):
        said = attended.run("%cutegen replay relu").text
        assert "written by manual: nothing runs now" in said
        assert "r0  first kernel: PASSED, first\n" in said
        assert "`%cutegen report relu_replay` shows it" in said
        assert "recorded 20" in attended.run("%cutegen report relu_replay").outputs[0]["data"]["text/html"]
        assert "relu_replay is a replay" in attended.run("%cutegen resume relu_replay").error
        assert "no session 'nothing'" in attended.run("%cutegen replay nothing").error
        gate = attended.run("%cutegen replay relu --round r0").outputs[0]["data"]
        assert "r0 waits for your decision" in gate["text/plain"]
        assert "there is no r9" in attended.run("%cutegen replay relu --round 9").error
        assert "write r0, r1 or so" in attended.run("%cutegen replay relu --round last").error
        assert "`%cutegen report relu_replay` shows" in attended.run("%cutegen panel relu_replay").error

    def test_a_stop_while_a_reply_is_waited_for_stores_no_instruction(self, attended: Kernel):
        line = "%%cutegen --name left --author manual --device simulator --policy auto --rounds 1"
        attended.run(f"{line}\n{PROBLEM}")
        until(attended, "waiting for the reply")
        assert "Stopped in round 0 while waiting for the reply; " in attended.run("%cutegen stop").text
        until(attended, "left: ended: ")
        (stopped,) = rows(attended.folder, "SELECT stopped FROM sessions WHERE name = 'left'")
        assert stopped.endswith(" stopped the session in round 0 while waiting for the reply")


CONFIG = """
[profile.mine]
base_url = "http://127.0.0.1:9/v1"
model = "small-coder"
[profile.hosted]
base_url = "https://models.example/v1"
model = "large-coder"
key_variable = "KEY_THAT_IS_NOT_SET"
"""


class TestAModelThatCannotBeHad:
    """Text that a cell shows to a person."""

    def test_each_trouble_is_one_sentence_with_the_next_step(self, unattended: Kernel):
        (unattended.folder / "config.toml").write_text(CONFIG)
        unattended.run("%env CUTEGEN_CONFIG=config.toml")
        for options, words in (
            ("--profile hostd", "no profile 'hostd' in config.toml; did you mean hosted?"),
            (
                "--profile hosted",
                "KEY_THAT_IS_NOT_SET is not set and https://models.example/v1 asks for a key",
            ),
            ("--author openai", "no model is named for https://api.openai.com/v1: give --model NAME"),
        ):
            ran = unattended.run(f"%%cutegen {options} --device simulator\n{PROBLEM}")
            assert words in ran.error
            assert "Traceback" not in ran.error

    def test_a_server_that_is_not_there_ends_the_session_with_its_address(self, unattended: Kernel):
        ran = unattended.run(f"%%cutegen --name relu --profile mine --device simulator\n{PROBLEM}")
        shown = ran.outputs[-1]["data"]["text/plain"]
        assert "http://127.0.0.1:9/v1 gave no answer" in shown
        assert "check that the server runs" in shown


def test_a_path_is_shown_from_the_notebooks_folder_or_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ada")
    assert short_path(tmp_path / ".cutegen" / "prompts" / "relu-0.md") == ".cutegen/prompts/relu-0.md"
    assert short_path(Path("/home/ada/kernels/relu-0.md")) == "~/kernels/relu-0.md"
    assert short_path(Path("/data/relu-0.md")) == "/data/relu-0.md"


STATED = "Strategy: two-rows-a-warp\nStatement: Give each warp two rows, so that their loads overlap.\nBuilds on: none\n"


def test_a_request_for_words_takes_words():
    asked = Prompt(system="", user="State one.", digest="d", purpose="invent")
    assert lacking(asked, "It is fast.", ()) != ""
    assert lacking(asked, STATED, ()) == ""
    assert reply_words(asked, STATED) == "This states the strategy two-rows-a-warp."
    again = Prompt(system="", user="State one.", digest="d", purpose="reply")
    assert lacking(again, STATED, ()) == ""
    assert "holds no code" in lacking(again, "It is fast.", ())
