"""Effects of the page on the panel and of the panel on the page: reloads, keys, hostile text, themes, widths."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cutegen_nb.analysis.source.diff import LineKind, diff

pytestmark = pytest.mark.long

PAYLOADS = (
    "<img src=x onerror=\"window.__ran='img'\">",
    "<script>window.__ran='script'</script>",
    "[link](javascript:window.__ran='link')",
    '<button data-commandlinker-command="notebook:insert-cell-below">click</button>',
    "![picture](http://example.invalid/p.png)",
    "</script></textarea></pre><svg onload=\"window.__ran='svg'\">",
    "\u202egnp.exe",
)
HOSTILE_SOURCE = '''import cutlass
import cutlass.cute as cute
import torch

# {text}


@cute.kernel
def {name}(x: cute.Tensor):
    """{text}"""


class ModelNew(torch.nn.Module):
    def forward(self, x):
        print({literal})
        raise ValueError({literal})
'''


class _Model(BaseHTTPRequestHandler):
    """Answers every request with hostile text, in the API's stream."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        text = " ".join(PAYLOADS)
        # Code that hides its direction is refused before it is shown as a candidate.
        shown = [item for item in PAYLOADS if "\u202e" not in item]
        source = HOSTILE_SOURCE.format(
            text=" ".join(shown).replace('"""', ""), name="hostile", literal=repr("\n".join(shown))
        )
        reply = f"# {PAYLOADS[0]}\n\n{text}\n\n```python\n{source}```\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for delta, finish in (({"role": "assistant", "content": reply}, None), ({}, "stop")):
            event = {
                "id": "1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": "hostile",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *args):
        pass


@pytest.fixture
def hostile_model():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    thread.join(5)


def test_nothing_a_model_writes_runs_or_asks_for_anything(sit, hostile_model):
    session = sit(f"--author openai --model hostile --base-url {hostile_model}")
    session.at_prompt(0)
    session.click("Steer…")
    session.panel.get_by_label("What should this request say").fill(PAYLOADS[0])
    session.click("Steer")
    session.until("onerror")
    session.ask(0)
    cells = session.notebook.cells()
    for tab in session.panel.get_by_role("tab").all():
        tab.click()
        for summary in session.panel.locator("summary:visible").all():
            summary.click()
    session.panel.get_by_role("tab", name="Change").or_(
        session.panel.get_by_role("tab", name="Source")
    ).first.click()
    if session.button("Side by side").count():
        session.click("Side by side")
        session.click("Side by side")
    for button in session.panel.get_by_text("click", exact=True).all():
        button.click()
    session.click("Reject…")
    session.panel.get_by_label("Why?").fill(" ".join(PAYLOADS))
    session.click("Reject")
    stored = session.stored(0)
    assert PAYLOADS[0] in stored["decisions"][-1]["reason"]
    session.at_prompt(1)
    assert session.notebook.page.evaluate("() => window.__ran ?? ''") == ""
    # CodeMirror puts an img without a source beside each character that it writes out.
    alive = "img[src]:not(.cgn-roofline), img[onerror], script, [onload], [data-commandlinker-command]"
    assert session.panel.locator(alive).evaluate_all("(all) => all.map((e) => e.outerHTML)") == []
    assert session.notebook.cells() == cells


def test_keys_typed_on_any_control_change_no_cell(sit):
    session = sit()
    session.ask(0)
    page = session.notebook.page
    session.click("Reject…")
    before = session.notebook.cells()
    selector = "button, textarea, select, summary, a[href], [tabindex], .cm-content"
    controls = session.panel.locator(selector)
    tried = 0
    for index in range(controls.count()):
        control = controls.nth(index)
        if not control.is_visible():
            continue
        control.focus()
        if not control.evaluate("(e) => e === document.activeElement"):
            continue
        for key in ("a", "b", "d", "d", "x", "m"):
            page.keyboard.press(key)
        tried += 1
        assert session.notebook.cell(session.index)["cell_type"] == "code"
        assert session.notebook.cells() == before, control.evaluate("(e) => e.outerHTML.slice(0, 200)")
    assert tried > 12
    missing = session.panel.evaluate(
        """(panel, selector) => [...panel.querySelectorAll(selector)].filter(
        (e) => e.tabIndex >= 0 && e.dataset.lmSuppressShortcuts !== 'true').map((e) => e.outerHTML.slice(0, 120))""",
        selector,
    )
    assert missing == []
    session.click("Cancel")
    session.click("Undo my edit")
    session.click("Approve")
    session.until("under Reject… and not sent it.")
    session.click("Approve")
    assert session.stored(0)["decisions"][-1]["action"] == "approve"


def test_the_focus_and_the_page_stay_where_they_are_after_a_click(sit):
    session = sit()
    session.at_prompt(0)
    page = session.notebook.page
    session.notebook.until(lambda: session.button("Ask").get_attribute("aria-disabled") is None)
    session.button("Ask").focus()
    before = page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTop")
    page.keyboard.press("Enter")
    session.at_revision(0)
    assert page.evaluate("() => document.activeElement.className").startswith("cgn-button")
    assert page.evaluate("() => document.querySelector('.jp-WindowedPanel-outer').scrollTop") == before
    session.notebook.until(lambda: session.button("Approve").get_attribute("aria-disabled") is None)
    page.keyboard.press("Enter")
    assert session.stored(0)["decisions"][-1]["action"] == "approve"


def test_a_page_loaded_again_finds_the_panel_the_draft_and_working_buttons(sit):
    session = sit()
    session.ask(0)
    editor = session.panel.get_by_label("Source of r0, editable")
    editor.press("Control+End")
    session.notebook.page.keyboard.insert_text("\n# half written\n")
    session.notebook.page.wait_for_timeout(700)
    session.notebook.save()
    session.notebook.open()
    session.at_revision(0)
    session.panel.get_by_label("Source of r0, editable").press("Control+End")
    session.until("# half written")
    session.click("Undo my edit")
    session.click("Approve")
    assert session.stored(0)["decisions"][-1]["action"] == "approve"
    session.at_prompt(1)
    assert "r0" in session.notebook.say("%cutegen report")


# JupyterLab's search for a widget's model, each 100 ms for two seconds, as on a page that is busy for longer.
BUSY = """if (sessionStorage.busy) {
  const later = window.setTimeout;
  window.setTimeout = (call, ms, ...rest) => later(call, ms === 100 ? 2500 : ms, ...rest);
}"""


def test_a_panel_that_a_busy_page_gave_up_is_drawn_again(sit):
    session = sit()
    session.ask(0)
    page = session.notebook.page
    page.add_init_script(BUSY)
    page.evaluate("() => sessionStorage.setItem('busy', 'yes')")
    session.notebook.save()
    session.notebook.open()
    page.evaluate("() => sessionStorage.removeItem('busy')")
    session.notebook.until_output(session.index, "Error displaying widget: model not found")
    session.at_revision(0)
    session.notebook.expect(session.panel).to_have_count(1)
    session.click("Approve")
    session.at_prompt(1)


def test_panels_of_a_page_share_one_module(sit):
    session = sit()
    session.at_prompt(0)
    session.notebook.save()
    session.notebook.open()
    session.at_prompt(0)
    assert session.notebook.page.evaluate("() => globalThis.cutegenNbModules.size") == 1


def test_an_earlier_round_can_be_looked_at_while_one_waits(sit):
    session = sit()
    session.ask(0)
    session.click("Approve")
    session.ask(1)
    session.button("Show r1").press("ArrowUp")
    page = session.notebook.page
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "Show r0"
    page.keyboard.press("Enter")
    session.until("r0 · first kernel")
    session.panel.get_by_role("tab", name="Lines").click()
    page.keyboard.press("Tab")  # to the lines without counts, and on to their figures in words
    session.panel.get_by_text("Every line’s figures in words").press("Enter")
    session.until("warp instructions; ")
    session.panel.get_by_role("tab", name="Counts").click()
    session.until("Totals of one call")
    session.panel.get_by_role("tab", name="Roofline").click()
    picture = session.panel.locator("img.cgn-roofline")
    picture.wait_for()
    session.notebook.until(lambda: picture.evaluate("(e) => e.complete"), what="the picture to be loaded")
    assert picture.evaluate("(e) => e.naturalWidth") == 1350
    session.panel.locator(".cgn-gate").get_by_role("button", name="Show r1").click()
    session.until("r1 · ")
    session.click("Approve")
    assert session.stored(1)["decisions"][-1]["action"] == "approve"


def test_a_session_that_has_ended_is_gone_through_in_its_panel(sit):
    session = sit()
    session.ask(0)
    session.click("Approve")
    session.ask(1)
    session.click("Approve")
    session.at_prompt(2)
    session.click("Stop")
    session.notebook.until(lambda: not session.panel.count(), what="the panel to give way")
    index = session.notebook.add(f"%cutegen panel {session.name}")
    session.notebook.run(index)
    panel = session.notebook.panel(index)
    session.notebook.until_panel(index, "r1 · ")
    panel.get_by_role("button", name="Show r0").click()
    session.notebook.until_panel(index, "r0 · first kernel")
    session.notebook.until_panel(index, f"{session.name} has ended")
    session.expect(panel.get_by_role("button", name="Approve")).to_be_hidden()


def test_a_restarted_kernel_takes_the_session_up_again(make_notebook, lab, kernel_name):
    from_problem = "import torch\ndef taken_up(x):\n    return torch.relu(x)\ndef get_inputs():\n    return [torch.randn(32, 64)]\n"
    # A store a kernel: the next one would take up the session of this one.
    folder = f"restarted_{kernel_name}"
    options = f"--device simulator --store {folder}"
    notebook = make_notebook(["%load_ext cutegen_nb", f"%%cutegen {options}\n{from_problem}"], kernel_name)
    notebook.run(0)
    notebook.run(1)
    _press(notebook, 1, "Ask", "send this request?")
    _press(notebook, 1, "Approve", "build on it?")
    notebook.until_panel(1, "r1 waits for you")
    notebook.restart_kernel()
    notebook.until_panel(1, "The kernel was restarted or is out of reach.")
    notebook.until_panel(1, "run %load_ext cutegen_nb and then %cutegen resume taken_up")
    notebook.expect(notebook.panel(1).locator(".cgn-elapsed")).to_have_text("")
    notebook.expect(notebook.panel(1).get_by_role("button", name="Ask", exact=True)).to_have_count(0)
    notebook.run(0)
    resumed = notebook.add(f"%cutegen resume taken_up --store {folder}")
    notebook.run(resumed)
    assert "taken_up" in notebook.text(resumed)
    _press(notebook, resumed, "Ask", "send the request?")
    notebook.until_revision(resumed, 1)
    _press(notebook, resumed, "Approve", "r1 waits for you")
    notebook.until_panel(resumed, "r2 waits for you")
    path = lab.folder / folder / "sessions.sqlite"
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    rounds = [json.loads(body) for (body,) in connection.execute("SELECT body FROM rounds ORDER BY number")]
    connection.close()
    assert [item["decisions"][-1]["action"] for item in rounds] == ["approve", "approve"]


def test_a_restarted_kernel_opens_the_gate_at_which_the_session_stood(make_notebook, lab, kernel_name):
    problem = "import torch\ndef left_open(x):\n    return torch.relu(x)\ndef get_inputs():\n    return [torch.randn(32, 64)]\n"
    folder = f"left_open_{kernel_name}"
    options = f"--device simulator --store {folder}"
    notebook = make_notebook(["%load_ext cutegen_nb", f"%%cutegen {options}\n{problem}"], kernel_name)
    notebook.run(0)
    notebook.run(1)
    _press(notebook, 1, "Ask", "send this request?")
    notebook.until_panel(1, "r0 waits for you")
    notebook.panel(1).get_by_label("Source of r0, editable").press("Control+End")
    notebook.page.keyboard.insert_text("\n# half written\n")
    path = lab.folder / folder / "sessions.sqlite"
    notebook.until(lambda: "half written" in _head(path), what="what was typed to be stored")
    notebook.restart_kernel()
    notebook.until_panel(1, "The kernel was restarted or is out of reach.")
    left = notebook.panel(1).get_by_label("Source of r0, editable")
    notebook.expect(left).to_have_attribute("contenteditable", "false")  # nobody would read what is typed
    notebook.run(0)
    resumed = notebook.add(f"%cutegen resume left_open --store {folder}")
    notebook.run(resumed)
    notebook.until_panel(resumed, "r0 waits for you")
    notebook.panel(resumed).get_by_label("Source of r0, editable").press("Control+End")
    notebook.until_panel(resumed, "# half written")
    stale = notebook.panel(resumed).locator(".cgn-verdict.cgn-stale[data-stale]")
    notebook.until(lambda: stale.count() == 1, what="the verdict to be of the version before the edit")
    _press(notebook, resumed, "Undo my edit", "not evaluated it yet")
    _press(notebook, resumed, "Approve", "r0 waits for you")
    notebook.until_panel(resumed, "r1 waits for you")
    notebook.shot("resumed")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    [(body,)] = connection.execute("SELECT body FROM rounds").fetchall()
    left = connection.execute("SELECT count(*) FROM intermediates").fetchone()
    connection.close()
    assert [item["action"] for item in json.loads(body)["decisions"]] == ["approve", "approve"]
    assert left == (0,)


def _head(path):
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    (head,) = connection.execute("SELECT head FROM sessions").fetchone()
    connection.close()
    return head


def _press(notebook, index, name, words):
    notebook.until_panel(index, words)
    notebook.panel(index).get_by_role("button", name=name, exact=True).click()


DEMO = """
import json
from cutegen_nb.notebook.panel import Panel
from cutegen_nb.notebook.view import Live
posted = []
def post(message):
    posted.append(message)
    if message["action"] == "stop":
        raise RuntimeError("the hand-over broke")
panel = Panel(post)
panel.show(None, Live(doing="reading the problem", since=1.0), None)
panel
"""


def test_a_fault_in_the_callback_is_said_in_the_panel(desk):
    index = desk.add(DEMO)
    desk.run(index)
    _press(desk, index, "Stop", "reading the problem")
    desk.until_panel(index, "That did not work: RuntimeError: the hand-over broke")
    assert "'stop'" in desk.say("posted")


def test_a_kernel_that_does_not_answer_is_named(desk):
    index = desk.add(DEMO)
    desk.run(index)
    desk.until_panel(index, "reading the problem")
    panel = desk.panel(index)
    desk.page.evaluate(
        "async () => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()"
    )
    desk.say("panel.unobserve_all()")
    panel.get_by_role("button", name="Stop", exact=True).click()
    desk.until_panel(index, "The kernel has not answered yet")


MARKED = """(panel) => [...panel.querySelectorAll('.cm-content .cm-line')]
  .filter((e) => /cm-(changed|inserted)Line/.test(e.className)).map((e) => e.textContent)"""


def test_panel_and_diff_mark_the_same_lines(desk, canned):
    whole = samples().five_rounds()
    old, new = (whole.rounds[number].candidate.source for number in (1, 2))
    lines = [line for hunk in diff(old, new).hunks for line in hunk.lines]
    index = desk.add(canned)
    desk.run(index)
    desk.until_panel(index, "build on it?")
    desk.panel(index).get_by_role("button", name="Whole file").click()
    added = [line.text for line in lines if line.kind is LineKind.ADDED]
    desk.until(lambda: desk.panel(index).evaluate(MARKED) == added, what=f"the marks of {added}")
    gone = desk.panel(index).locator(".cm-deletedLine").all_inner_texts()
    assert gone == [line.text for line in lines if line.kind is LineKind.REMOVED]


CUT_NAMES = """(rounds) => [...rounds.querySelectorAll('tbody tr')].map((row) =>
  [...row.querySelectorAll('td:nth-child(2) .cgn-clip, .cgn-under')].filter((e) => e.offsetParent))
  .filter(([e, ...more]) => !e || more.length || e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1)
  .length"""
"""The number of rows whose strategy is cut, or not shown once."""
HEADING_LINES = """(rounds) => [...rounds.querySelectorAll('thead th')].filter((e) => e.offsetParent)
  .map((e) => { const range = document.createRange(); range.selectNodeContents(e);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; })"""
TABS = ("Change", "Correctness", "Counts", "Diagnosis", "Lines", "Roofline", "Prompt and reply")


def test_it_is_readable_from_600_to_1400_pixels_in_both_themes(make_notebook, canned):
    notebook = make_notebook([canned])
    notebook.page.evaluate("() => window.jupyterapp.commands.execute('application:toggle-left-area')")
    notebook.run(0)
    notebook.until_panel(0, "build on it?")
    panel = notebook.panel(0)
    for theme in ("light", "dark"):
        notebook.set_theme(theme)
        for width in (600, 800, 1000, 1400):
            notebook.page.set_viewport_size({"width": width, "height": 1000})
            rounds = panel.get_by_role("region", name="Rounds")
            assert rounds.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1"), (theme, width)
            verdict = () if width < 800 else ("Verdict",)
            for heading in ("Round", *verdict, "Against best", "Estimate", "Bytes ÷ least", "Decision"):
                assert rounds.get_by_role("columnheader", name=heading).is_visible(), (width, heading)
            assert rounds.evaluate(CUT_NAMES) == 0, (theme, width)
            assert width < 800 or set(rounds.evaluate(HEADING_LINES)) == {1}, (theme, width)
            for tab in TABS:
                panel.get_by_role("tab", name=tab).click()
                assert tab != "Lines" or panel.evaluate(SOURCE_WIDTH) >= 190, (theme, width)
                notebook.shot(f"{theme}-{width}-{tab.split()[0]}", ".cgn-panel")
                assert panel.evaluate("(e) => e.scrollWidth <= e.clientWidth + 1"), (theme, width, tab)
                assert notebook.page.evaluate(LOW_CONTRAST) == [], (theme, width, tab)
    assert notebook.errors == []
    assert notebook.outside == []


SOURCE_WIDTH = """(panel) => { const card = panel.querySelector('.cgn-html-lines [style*="overflow-x"]');
  const source = card.querySelector('td:last-child').getBoundingClientRect();
  return Math.min(source.right, card.getBoundingClientRect().right) - source.left; }"""
"""Pixels of the source in sight, in the tab Lines, before it is scrolled."""

LOW_CONTRAST = """() => {
  const parse = (text) => {
    const [r, g, b, a] = text.match(/[\\d.]+/g).map(Number);
    const scale = text.startsWith('color(') ? 255 : 1;
    return [r * scale, g * scale, b * scale, a ?? 1];
  };
  const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    const layers = [];
    for (let at = e; at; at = at.parentElement) layers.push(parse(getComputedStyle(at).backgroundColor));
    return layers.reverse().reduce((under, top) => over(top, under), [255, 255, 255, 1]);
  };
  const light = (c) => {
    const [r, g, b] = c.map((x) => x / 255).map((x) => (x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const low = [];
  for (const e of document.querySelectorAll('.cgn-panel *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.offsetParent || e.closest('[aria-disabled="true"], .cgn-hidden-text')) continue;
    const back = ground(e);
    const ink = over(parse(getComputedStyle(e).color), back);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${e.className}: ${e.textContent.slice(0, 40)}`);
  }
  return low;
}"""


SAMPLES = Path(__file__).parents[1] / "report" / "conftest.py"


def samples():
    """The sessions of the report's tests."""
    spec = importlib.util.spec_from_file_location("report_samples_of_pages", SAMPLES)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def canned():
    """A cell that shows a recorded session waiting at the revision gate."""
    return f"""
import importlib.util, time
from dataclasses import replace
spec = importlib.util.spec_from_file_location("samples", {str(SAMPLES)!r})
samples = importlib.util.module_from_spec(spec)
spec.loader.exec_module(samples)
from cutegen_nb.notebook.approver import Gate
from cutegen_nb.notebook.panel import Panel
from cutegen_nb.notebook.view import Live
whole = samples.five_rounds()
pending = whole.rounds[2]
panel = Panel(lambda message: None)
open_session = replace(whole, rounds=whole.rounds[:2], stopped="")
panel.show(
    open_session,
    Live(
        gate=Gate(
            kind="revision", session=open_session, attempts=pending.attempts, comparison=pending.comparison
        ),
        since=time.time(),
    ),
    None,
)
panel
"""
