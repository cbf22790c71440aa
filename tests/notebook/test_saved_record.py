"""The record is what an untrusted notebook shows: nothing in it may run, fetch, or be dropped."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.round import Action, Attempt, Decision, Prompt, Reply, Round, Usage
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.notebook.saved_record import record, waiting
from cutegen_nb.testing import examples

PAYLOADS = (
    "<img src=x onerror=\"window.__x='img'\">",
    "<script>window.__x='script'</script>",
    '<button data-commandlinker-command="apputils:run">x</button>',
    "[x](javascript:window.__x=1)",
    "</pre></td></table><svg onload=alert(1)>",
)


def hostile_session(count: int = 1, lines: int = 3) -> Session:
    text = "\n".join(PAYLOADS)
    rounds = []
    for number in range(count):
        source = f"# {number}\n" + "\n".join(
            f"x{i} = {number} + {i}  # {text.splitlines()[0]}" for i in range(lines)
        )
        candidate = Candidate(source=f'"""{text}"""\n{source}', author="openai:evil<b>", rationale=text)
        prompt = Prompt(system=text, user=text, digest="d")
        evaluation = replace(examples.passed(100 - number), log=text, summary=text)
        attempt = Attempt(
            purpose="generate",
            prompt=prompt,
            reply=Reply(text=text, usage=Usage()),
            candidate=candidate,
            evaluation=evaluation,
        )
        rounds.append(
            Round(
                number=number,
                stage=Stage.STRUCTURE,
                strategy=None,
                attempts=(attempt,),
                comparison=Comparison(relation=Relation.LESS_WORK, reason=text),
                decisions=(Decision(gate="revision", action=Action.APPROVE, by="person:<i>", reason=text),),
                started_at="2026-01-01T00:00:00+00:00",
                seconds=1.0,
                note=text,
            )
        )
    return Session(
        name="relu",
        problem=replace(examples.relu_problem(), source=f"# {text}\n" + examples.RELU_SOURCE),
        facts=examples.relu_facts(),
        device=examples.simulated_device(),
        author="openai:evil<b>",
        budget=Budget(),
        created_at="2026-01-01T00:00:00+00:00",
        rounds=tuple(rounds),
        stopped=text,
    )


def apart(html: str) -> tuple[str, list[str]]:
    """The record without its sheets, which a page that does not trust it drops, and the sheets."""
    return re.sub(r"<style>.*?</style>", "", html), re.findall(r"<style>(.*?)</style>", html)


def test_model_text_never_becomes_markup():
    html, _ = apart(record(hostile_session())["text/html"])
    tags = set(re.findall(r"<([a-zA-Z]+)", html))
    assert tags.isdisjoint({"script", "svg", "button", "iframe", "style", "link", "form", "object", "a"})
    assert not re.search(r"<[^>]*\son\w+\s*=", html)
    assert all(
        source.startswith("data:image/png;base64,") for source in re.findall(r'<img[^>]* src="([^"]*)"', html)
    )
    assert "window.__x" in html, "the words themselves are shown"


def test_a_dark_page_shows_the_dark_picture_and_a_narrow_one_fewer_figures_and_no_sheet_holds_more():
    html, sheets = apart(record(hostile_session())["text/html"])
    assert len(sheets) == 2
    assert re.fullmatch(r"(@container \(max-width:\d+px\)(\{[^{}]*(\{[^{}]*\}[^{}]*)*\}))+", sheets[0])
    assert ":is(:nth-last-child(2),:nth-last-child(3),:nth-last-child(4)){display:none}" in sheets[0]
    assert "url(" not in sheets[0]
    name, image = re.fullmatch(
        r":is\(\[data-jp-theme-light=\"false\"\],\[data-vscode-theme-kind\*=\"dark\"\]\) "
        r"\.(cgn-roofline-[0-9a-f]{12})\{content:url\((data:image/png;base64,[A-Za-z0-9+/=]+)\)\}",
        sheets[1],
    ).groups()
    assert html.count(f'<img class="{name}" src="data:image/png;base64,') == 1
    assert image not in html, "the other picture"


def test_nothing_needs_a_style_sheet_or_another_host():
    html, _ = apart(record(hostile_session())["text/html"])
    outside_text = re.sub(r">[^<]*<", "><", html)
    assert "var(" not in outside_text
    assert "url(" not in outside_text
    assert "http" not in outside_text
    assert not re.search(r'style="[^"]*(?<![-a-z])color:', html), "text takes the page's own colour"


@pytest.mark.long
def test_ten_long_rounds_stay_below_a_megabyte():
    html = record(hostile_session(count=10, lines=120))["text/html"]
    assert len(html.encode()) < 1_000_000
    assert html.count("<details") >= 10


def test_before_there_is_a_session_a_sentence_stands_in():
    assert waiting("<b>", "starting")["text/html"] == "<p><b>&lt;b&gt;</b>: starting</p>"


def test_mathjax_leaves_the_whole_record_alone():
    """Of `$0, $1` in a kernel it would make a formula; the classes are those of its versions 3 and 2."""
    html = record(hostile_session())["text/html"]
    assert html.startswith('<div class="mathjax_ignore tex2jax_ignore">')
    assert html.endswith("</div>")


def test_beside_a_panel_the_record_is_folded_into_one_line():
    session = hostile_session()
    folded = record(session, beside_panel=True)["text/html"]
    assert re.search(r"<details[^>]*><summary[^>]*>Record of relu, kept in this file: 1 round", folded)
    assert "kept in this file" not in record(session)["text/html"]


@pytest.mark.long
def test_a_population_is_in_the_record_with_its_decisions():
    made = record(examples.evolved_session())
    assert "the only one with tiles" in made["text/html"]
    assert "pinned" in made["text/html"]
    assert "pinned" not in record(examples.session_of(Relation.FIRST))["text/html"]


def test_a_stop_that_is_not_stored_is_told_in_both_texts():
    made = record(replace(hostile_session(), stopped=""), "the kernel ended it")
    assert "the kernel ended it" in made["text/html"]
    assert made["text/plain"].endswith("the kernel ended it\n")


def test_a_stop_by_a_person_is_told_by_their_name():
    ended = replace(
        examples.session_of(Relation.FIRST), stopped="person:root stopped the session at round 0: enough"
    )
    told = record(ended, ended.stopped)
    for text in told.values():
        assert "Ended: root stopped it at round 0: “enough”" in " ".join(text.split())
