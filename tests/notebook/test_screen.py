"""The outputs of a session below its cell, with a page that clicks, is loaded again and looks around."""

from __future__ import annotations

import json

import pytest
from notebook_kernels import PROBLEM, Kernel, Ran, rows


@pytest.fixture(scope="module")
def started(attended: Kernel) -> Ran:
    ran = attended.run(f"%%cutegen --name seen --rounds 9 --device simulator\n{PROBLEM}")
    assert ran.status == "ok", ran.error
    attended.gate()
    return ran


class TestAPanel:
    """In order: a session is decided upon by clicks, on a page that is loaded again in the middle of it."""

    def test_a_click_sends_the_request(self, attended: Kernel, started: Ran):
        panel = started.panel
        attended.until(panel, "view", lambda view: view["live"]["gate"] == "prompt")
        attended.send(panel, page=1.0)
        attended.act(panel, "approve")
        view = attended.until(panel, "view", lambda view: view["live"]["gate"] == "revision")
        assert view["gate"]["can_approve"] is True
        assert attended.trait(panel, "saved") == {}, "the first page gets its updates from the kernel"

    def test_a_page_loaded_again_is_given_the_record_for_its_file(self, attended: Kernel, started: Ran):
        panel = started.panel
        attended.send(panel, page=2.0)
        saved = attended.until(panel, "saved", bool)
        marks = [output["metadata"]["cutegen_nb"] for output in started.outputs]
        assert [mark["part"] for mark in marks] == ["panel", "record"]
        assert {mark["id"] for mark in marks} == {saved["id"]}
        assert saved["panel"] == {}
        attended.act(panel, "approve")
        saved = attended.until(panel, "saved", lambda saved: "r0" in saved["record"]["text/plain"])
        assert "r0 · " in saved["record"]["text/html"]

    def test_an_edit_that_fails_gives_way_to_the_version_that_passed(self, attended: Kernel, started: Ran):
        panel = started.panel
        attended.until(panel, "view", lambda view: view["live"]["gate"] == "prompt")
        attended.act(panel, "approve")
        attended.until(panel, "view", lambda view: view["live"]["gate"] == "revision")
        attended.act(panel, "edit", edited="x = 1\n")
        detail = attended.until(panel, "detail", lambda detail: detail.get("new") == "x = 1\n")
        assert [item["good"] for item in detail["versions"]] == [True, False]
        attended.act(panel, "compare", round=1, attempt=0)
        detail = attended.until(panel, "detail", lambda detail: detail["old_name"] == "version 1 of r1")
        assert "x = 1" not in detail["old"]
        attended.act(panel, "compare", round=-1)
        attended.until(panel, "detail", lambda detail: detail["old_name"] == "r0")
        attended.act(panel, "select", round=1, attempt=0)
        detail = attended.until(panel, "detail", lambda detail: detail["is_old"])
        passed = detail["new"]
        attended.act(panel, "restore", attempt=0)
        attended.until(panel, "detail", lambda detail: detail["new"] == passed and not detail["is_old"])
        view = attended.until(panel, "view", lambda view: view["live"]["gate"] == "revision")
        assert view["gate"]["can_approve"] is True
        attended.act(panel, "approve")
        view = attended.until(panel, "view", lambda view: view["live"]["gate"] == "prompt")
        assert view["selected"] == 2, "the next request is shown, not the round whose version was looked at"
        body = json.loads(rows(attended.folder)[1])
        assert [item["purpose"] for item in body["attempts"]] == ["optimise", "edit", "restore"]
        assert body["attempts"][2]["candidate"]["source"] == body["attempts"][0]["candidate"]["source"]

    def test_the_end_is_given_to_the_file_in_the_place_of_the_panel(self, attended: Kernel, started: Ran):
        panel = started.panel
        attended.act(panel, "stop")
        saved = attended.until(panel, "saved", lambda saved: saved["panel"])
        assert "seen has ended. " in saved["panel"]["text/plain"]
        assert "%cutegen resume seen" in saved["panel"]["text/plain"]
        assert "Working" not in saved["record"]["text/html"]
