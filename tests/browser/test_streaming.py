"""A model streams its reply: the person reads it while it comes, under a request that stays where it was."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cutegen_nb.testing.model_server import ModelServer, answers
from tests.browser.test_ending import gives_way, press
from tests.browser.test_steering import KERNEL

pytestmark = pytest.mark.long

WORDS = "Each thread takes one element of the tensor. " * 20


class _Model(BaseHTTPRequestHandler):
    """Streams words, and once it may go on, a kernel."""

    may_go_on = threading.Event()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self._send({"role": "assistant", "content": WORDS})
        self.may_go_on.wait(120)
        self._send({"content": f"\n\n```python\n{KERNEL}```\n"})
        self._send({}, "stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _send(self, delta, finish=None):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": [choice],
        }
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *args):
        pass


@pytest.fixture
def streaming_model():
    _Model.may_go_on.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    _Model.may_go_on.set()
    server.shutdown()
    thread.join(5)


def height(found):
    return found.bounding_box()["height"]


def test_a_reply_is_read_while_it_comes_and_the_request_stays_in_its_place(sit, streaming_model):
    session = sit(f"--author openai --model m --base-url {streaming_model}")
    session.at_prompt(0)
    request = session.panel.locator(".cgn-detail .cgn-editor")
    before = height(request)
    session.click("Ask")
    written = session.panel.locator(".cgn-written")
    session.expect(written).to_contain_text("Each thread takes one element of the tensor.")
    session.expect(written).to_have_css("word-break", "normal")
    session.expect(session.panel.locator(".cgn-status")).to_have_text(
        "The request for r0 was sent. Working on r0:"
    )
    session.expect(session.panel.locator(".cgn-detail")).to_contain_text("was asked")
    assert height(request) == before
    session.expect(session.panel.get_by_text("the first one appears here")).to_have_count(0)
    _Model.may_go_on.set()
    session.at_revision(0)
    session.expect(written).to_be_hidden()
    session.expect(session.panel.locator(".cgn-status")).to_have_text("r0 waits for you: build on it?")
    session.expect(session.editor(0)).to_contain_text("relu_kernel")


def test_a_request_that_was_out_when_a_person_stopped_is_asked_about_again(sit, streaming_model):
    session = sit(f"--author openai --model m --base-url {streaming_model}")
    session.at_prompt(0)
    session.panel.get_by_label("Request for r0, editable").press("Control+Home")
    session.notebook.page.keyboard.insert_text("Mind the tail. ")
    session.click("Send edited")
    session.expect(session.panel.locator(".cgn-written")).to_contain_text("Each thread takes one element")
    session.click("Stop")
    gives_way(session)
    assert session.rounds() == []
    press(session, "Go on")
    session.until_request(0, "Mind the tail.")
    session.notebook.shot("stopped-while-streaming")
    _Model.may_go_on.set()
    session.ask(0)
    session.click("Approve")
    [asked] = [item["prompt"]["user"] for item in session.stored(0)["attempts"]]
    assert asked.startswith("Mind the tail. ")


@pytest.fixture
def talking_model():
    """A model server whose every reply is words without code."""
    with ModelServer([answers("Which GPU do you have? Then I shall write it.")]) as server:
        yield server.url


def test_a_round_whose_replies_hold_no_code_says_so_at_the_next_request(sit, talking_model):
    session = sit(f"--author openai --model m --base-url {talking_model}")
    session.at_prompt(0)
    session.click("Ask")
    session.at_prompt(1)
    session.until_status(
        "No kernel came in r0: the last of 3 replies held words and no code (“Which GPU do you have?"
    )
