"""Somebody decides: by the line magics here, which take the way of the panel's buttons."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from notebook_kernels import PROBLEM, ROOT, Kernel, rows

HELD_UP = """import torch

def slow(x):
    return torch.relu(x) + 1.0

def get_inputs():
    return [torch.randn(2048, 1024)]
"""


NOTE_LOCK = """import fcntl
import cutegen_nb.notebook.running as running

free, draw = [], running.record

def noted(session, state="", **more):
    if state:
        with open(".cutegen/sessions.lock", "a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free.append(True)
            except OSError:
                free.append(False)
    return draw(session, state, **more)

running.record = noted
"""
"""Cell that notes, at each drawing of an end, whether the store's lock is free."""


def decisions(kernel: Kernel, number: int, name: str = "gelu") -> list[dict]:
    """What the store says was decided in a round."""
    query = "SELECT body FROM rounds JOIN sessions ON id = session_id WHERE name = '{}' ORDER BY number"
    return json.loads(rows(kernel.folder, query.format(name))[number])["decisions"]


def workers(kernel: Kernel) -> list[int]:
    """Processes under the kernel that hold a candidate: the template's wardens and their workers."""
    parents: dict[int, int] = {}
    for folder in (item for item in Path("/proc").iterdir() if item.name.isdigit()):
        try:
            fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(folder.name)] = int(fields[1])
    top = kernel.manager.provisioner.pid
    templates = [pid for pid, parent in parents.items() if parent == top]
    return [pid for pid, parent in parents.items() if parent in templates]


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds, with patience for a loaded machine."""
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.05)


class TestOneSession:
    """In order: each test decides one thing and reads the row that it caused."""

    def test_the_cell_returns_at_once_with_a_panel_and_a_record_beside_it(self, attended: Kernel):
        # Nobody has decided anything yet, so a cell that waited for the end would never return.
        ran = attended.run(f"%%cutegen --rounds 9\n{PROBLEM}")
        assert ran.status == "ok", ran.error
        assert [sorted(output["data"]) for output in ran.outputs] == [
            ["application/vnd.jupyter.widget-view+json", "text/plain"],
            ["text/html", "text/plain"],
        ]

    def test_another_cell_runs_while_it_works(self, attended: Kernel):
        assert attended.run("print(6 * 7)").text == "42\n"
        assert (
            "approved yet" in attended.run("gelu.best").error
            or "not open yet" in attended.run("gelu.best").error
        )

    def test_the_prompt_gate_takes_no_reject(self, attended: Kernel):
        assert "the prompt waits for you" in attended.gate()
        assert "cannot be answered with reject" in attended.run("%cutegen reject no").error
        assert "steer needs words" in attended.run("%cutegen steer").error

    def test_steering_takes_the_words_as_they_are(self, attended: Kernel):
        assert attended.run("%cutegen steer don't use {braces} or --flags $HOME").status == "ok"
        attended.gate()
        assert attended.run("%cutegen approve").status == "ok"
        assert "r0 (PASSED) waits" in attended.gate()
        assert attended.run("%cutegen approve right").status == "ok"
        assert "round 1: the prompt" in attended.gate()
        made = decisions(attended, 0)
        assert [item["action"] for item in made] == ["steer", "approve", "approve"]
        assert made[0]["reason"] == "don't use {braces} or --flags $HOME"
        assert made[2]["by"].startswith("person:")
        assert made[2]["reason"] == "right"

    def test_rejecting_keeps_the_reason(self, attended: Kernel):
        attended.run("%cutegen approve")
        assert "r1 (PASSED) waits" in attended.gate()
        attended.run('%cutegen reject "too much shared memory"')
        attended.gate()
        assert decisions(attended, 1)[-1]["reason"] == "too much shared memory"
        assert [decisions(attended, number)[-1]["action"] for number in (0, 1)] == ["approve", "reject"]

    def test_an_edited_prompt_is_what_is_asked(self, attended: Kernel):
        attended.run("%cutegen edit")
        # `%cutegen edit` puts the text into the next cell; a client without cells sees it as a payload.
        assert attended.run("%%cutegen edit\nWrite it with one thread an element.").status == "ok"
        attended.gate()
        assert attended.run("%cutegen status").status == "ok"
        assert "revision r2" in attended.run("%cutegen status").text

    def test_an_edited_kernel_is_evaluated_before_it_counts(self, attended: Kernel):
        attended.run("import pathlib; pathlib.Path('mine.py').write_text('# mine\\n' + gelu[0].source)")
        assert attended.run("%cutegen edit mine.py").status == "ok"
        assert "r2 (PASSED) waits" in attended.gate()
        assert "what it was" in attended.run("%cutegen edit mine.py").error

    def test_what_cannot_be_merged_leaves_the_gate_open(self, attended: Kernel):
        assert "no revision 'r9': there is r0, r1, r2" in attended.run("%cutegen merge r1 r9").error
        assert "has all of the other's changes already" in attended.run("%cutegen merge r0 r1").error
        assert "r2 (PASSED) waits" in attended.gate()

    def test_branching_goes_on_from_the_named_revision(self, attended: Kernel):
        assert "no passing revision 'r7'" in attended.run("%cutegen branch r7").error
        assert attended.run("%cutegen branch r0").status == "ok"
        attended.gate()
        made = decisions(attended, 2)
        assert [item["action"] for item in made] == ["edit", "edit", "branch"]
        assert made[0]["edited"] == "Write it with one thread an element.\n"
        assert made[1]["edited"].startswith("# mine\n")
        assert made[2]["edited"] == "r0"
        assert "cutegen-nb merge gelu r1 r2 -o" in attended.run("%cutegen merge r1 r2").error

    def test_the_running_session_keeps_its_name(self, attended: Kernel):
        assert "gelu is at work already" in attended.run(f"%%cutegen\n{PROBLEM}").error
        assert attended.run("%cutegen panel").mime_types >= {"application/vnd.jupyter.widget-view+json"}

    def test_a_click_on_what_was_shown_before_decides_nothing(self, attended: Kernel):
        late = {"action": "approve", "gate": "revision", "reason": "", "edited": "", "round": -1}
        code = (
            "import cutegen_nb.notebook.magics as m, time\n"
            "running = next(iter(m._extensions.values()))._desk.find()\n"
            f"running.post({late})\ntime.sleep(0.2)\nprint(running.live.notice, '|', running.gate.kind)"
        )
        said = attended.run(code)
        assert "nothing was decided" in said.text, said.error
        assert said.text.endswith("| prompt\n")

    def test_stopping_at_a_gate_is_a_decision(self, attended: Kernel):
        assert attended.run("%cutegen stop enough for today").status == "ok"
        assert "ended" in attended.gate()
        assert len(rows(attended.folder)) == 3, "the request was not sent, and is no round"
        assert "enough for today" in rows(attended.folder, "SELECT stopped FROM sessions")[0]
        assert "has ended" in attended.run("%cutegen approve").error

    def test_the_panel_gives_way_to_a_sentence_at_the_end(self, attended: Kernel):
        attended.run(f"%%cutegen --name short --rounds 1\n{PROBLEM}")
        attended.gate()
        attended.run("%cutegen stop")
        ran = attended.run("%cutegen wait")
        time.sleep(0.5)
        later = attended.run("pass")
        updated = [item for item in ran.outputs + later.outputs if item["kind"] == "update_display_data"]
        assert any("short has ended" in item["data"]["text/plain"] for item in updated) or "ended" in ran.text


class TestStopping:
    def test_stop_in_mid_evaluation_ends_the_worker(self, attended: Kernel):
        attended.run(f"%%cutegen --name slow\n{HELD_UP}")
        attended.gate()
        assert attended.run("%cutegen approve").status == "ok"
        until(lambda: workers(attended), "an evaluation to begin")
        said = attended.run("%cutegen stop")
        until(lambda: not workers(attended), "the worker to be gone")
        assert "finished rounds are kept" in said.text
        assert attended.run("print('the kernel goes on')").text == "the kernel goes on\n"
        attended.gate()
        stopped = rows(attended.folder, "SELECT stopped FROM sessions WHERE name = 'slow'")[0]
        assert "stopped the session in round 0" in stopped

    @pytest.mark.long
    def test_a_blocking_cell_does_not_spoil_an_evaluation(self, attended: Kernel):
        attended.run(NOTE_LOCK)
        attended.run(f"%%cutegen --name patient --rounds 1\n{PROBLEM}")
        attended.gate()
        attended.run("%cutegen approve")
        attended.run("import time; time.sleep(4)")
        assert "r0 (PASSED) waits" in attended.gate()
        attended.run("%cutegen stop")
        attended.run("%cutegen resume patient")
        assert "r0 (PASSED) waits" in attended.gate(), "the stop left its decision open"
        attended.run("%cutegen approve")
        assert "the budget of 1 round is spent" in attended.gate()
        assert attended.run("print(free)").text == "[True, True]\n", "another process may write at once"


class TestRestart:
    @pytest.mark.long
    def test_a_gate_without_a_repair_is_opened_again_with_its_judged_edit(self, tmp_path):
        problem, right = (
            (ROOT / "tests/evaluator" / kind / "relu.py").read_text() for kind in ("problems", "candidates")
        )
        wrong = right.replace("y[index] = 0.0", "y[index] = 1.0")
        first = Kernel(tmp_path, attended=True)
        panel = first.run(
            f"%%cutegen --name man --author manual --device simulator --rounds 2\n{problem}"
        ).panel
        first.gate()
        first.run("%cutegen approve")
        first.until(panel, "view", lambda view: view["carry"])
        first.act(panel, "reply", edited=f"Rationale: mine.\n```python\n{wrong}```")
        first.until(panel, "view", lambda view: view["carry"] and view["carry"]["can_skip"])
        first.act(panel, "skip")
        first.until(panel, "view", lambda view: view["live"]["gate"] == "revision")
        first.run("%cutegen steer 256 threads")
        first.gate()
        first.act(panel, "edit", edited=right)
        first.until(panel, "view", lambda view: view["gate"] and view["gate"]["can_approve"])
        before = (first.trait(panel, "view"), first.trait(panel, "detail"))
        first.manager.shutdown_kernel(now=True)
        first.client.stop_channels()
        second = Kernel(tmp_path, attended=True)
        try:
            panel = second.run("%cutegen resume man").panel
            view = second.until(panel, "view", lambda view: view["carry"] or view["gate"])
            detail = second.trait(panel, "detail")
            assert (view["gate"], view["rounds"]) == (before[0]["gate"], before[0]["rounds"])
            assert view["rounds"][0]["words"] == "256 threads"
            assert [item["verdict"] for item in detail["versions"]] == ["WRONG_VALUES", "PASSED"]
            assert detail == before[1]
        finally:
            second.close()

    @pytest.mark.long
    def test_a_round_goes_on_where_the_killed_kernel_left_it(self, tmp_path):
        first = Kernel(tmp_path, attended=True)
        first.run(f"%%cutegen --rounds 3\n{PROBLEM}")
        first.gate()
        for _ in range(2):
            first.run("%cutegen approve")
            first.gate()
        assert len(rows(tmp_path)) == 1
        first.run("%cutegen compare r0")
        first.run("%cutegen approve")
        first.manager.shutdown_kernel(now=True)
        first.client.stop_channels()
        second = Kernel(tmp_path, attended=True)
        try:
            assert "gelu" in second.run("%cutegen sessions").plain
            resumed = second.run("%cutegen resume gelu")
            assert resumed.status == "ok"
            assert "round 1: revision r1 (PASSED) waits" in second.gate(), "its prompt was approved"
            assert second.run("print(gelu.best.name)").text == "r0\n"
            base = second.until(resumed.panel, "detail", lambda shown: shown["kind"] == "round")["base"]
            assert base["pinned"] == 0, "what was chosen before the restart"
            second.run("%cutegen approve")
            second.gate()
            assert len(rows(tmp_path)) == 2
        finally:
            second.close()


def test_status_and_decisions_are_of_the_sessions_that_wait(attended: Kernel):
    attended.run(f"%%cutegen --name early --rounds 1\n{PROBLEM}")
    attended.gate()
    attended.run(f"%%cutegen --name late --rounds 1\n{PROBLEM.replace('def ', 'def other_', 1)}")
    attended.gate()
    assert "Waiting too: early" in attended.run("%cutegen status").text
    assert "Waiting too" not in attended.run("%cutegen status early").text

    def stopped(name: str) -> str:
        return rows(attended.folder, f"SELECT stopped FROM sessions WHERE name = '{name}'")[0]

    # A decision without a name is for the session that waits, not for the last one, which has ended.
    attended.run("%cutegen stop")
    until(lambda: stopped("late"), "the end of late")
    attended.run("%cutegen stop enough")
    until(lambda: "enough" in stopped("early"), "the end of early")


@pytest.mark.long
@pytest.mark.parametrize("policy", ["auto"])
def test_a_policy_decides_where_it_is_told_to(attended: Kernel, policy: str):
    attended.run(f"%%cutegen --name alone --rounds 1 --policy {policy}\n{PROBLEM}")
    assert "ended: the budget of 1 round is spent" in attended.gate()
    assert attended.run("print(alone.best.name)").text == "r0\n"
