from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from cutegen_nb.analysis.history.summary import rows
from cutegen_nb.core.errors import StoreError, UsageError
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.round import Action, Decision
from cutegen_nb.core.session import Session
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.report.html.session_page import render, write_report
from cutegen_nb.testing.examples import evolved_session


@pytest.fixture(scope="session")
def page(session) -> str:
    return render(session)


def poisoned(session: Session, payload: str) -> Session:
    """The payload wherever a model, a kernel, a person or a file name puts text."""
    plan = Strategy(name=payload, statement=payload, source=payload)
    rounds = []
    for item in session.rounds:
        attempts = tuple(
            replace(
                attempt,
                problem=payload,
                purpose=payload,
                prompt=replace(attempt.prompt, system=payload, user=payload),
                reply=replace(attempt.reply, text=payload),
                candidate=attempt.candidate and replace_candidate(attempt.candidate, payload, plan),
                evaluation=attempt.evaluation and replace_evaluation(attempt.evaluation, payload),
            )
            for attempt in item.attempts
        )
        comparison = item.comparison and replace(item.comparison, reason=payload)
        decisions = (
            Decision(gate="prompt", action=Action.STEER, by=payload, reason=payload),
            Decision(gate="revision", action=Action.REJECT, by=payload, reason=payload),
        )
        rounds.append(
            replace(
                item,
                strategy=plan,
                attempts=attempts,
                comparison=comparison,
                decisions=decisions,
                note=payload,
                started_at=payload,
            )
        )
    return replace(
        session,
        name=payload,
        problem=Problem(name=payload, source=payload, form=ProblemForm.FUNCTION, path=f"/home/{payload}"),
        facts=replace(session.facts, warnings=(payload,)),
        device=replace(session.device, name=payload, architecture=payload, source=payload),
        author=payload,
        created_at=payload,
        stopped=payload,
        rounds=tuple(rounds),
    )


def replace_candidate(candidate, payload, plan):
    from cutegen_nb.core.candidate import Candidate

    return Candidate(
        source=f"{candidate.source}\n# {payload}\nX = '''{payload}'''\n",
        author=payload,
        parents=candidate.parents,
        strategy=plan,
        rationale=payload,
    )


def replace_evaluation(evaluation, payload):
    severity = Severity.FLAG if evaluation.passed else Severity.DECIDES
    profile = evaluation.profile and replace(
        evaluation.profile,
        launches=tuple(replace(item, kernel=payload) for item in evaluation.profile.launches),
    )
    correctness = evaluation.correctness and replace(
        evaluation.correctness,
        checks=(payload,),
        checks_not_run=(payload,),
        outputs=tuple(
            replace(item, dtype=payload, pattern=payload) for item in evaluation.correctness.outputs
        ),
    )
    return replace(
        evaluation,
        summary=payload,
        log=payload,
        profile=profile,
        correctness=correctness,
        findings=(Finding(kind=payload, message=payload, line=3, severity=severity),),
    )


@pytest.mark.first(1)
def test_text_from_outside_stays_text(session, payload, harmless):
    assert harmless(render(poisoned(session, payload)), payload) > 60


@pytest.mark.long
def test_every_text_of_a_population_stays_text(payload, harmless, poison):
    """Statements, aligned statements, reasons of duels and decisions, notes."""
    session = evolved_session(words=payload)
    assert harmless(render(session), payload) > 10
    assert harmless(render(poison(session, payload)), payload) > 40


def test_the_page_asks_nothing_of_anyone(page, read):
    found = read(page)
    assert not [tag for tag, _ in found.tags if tag in {"script", "link", "iframe", "object", "form"}]
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    policy = next(attributes["content"] for tag, attributes in found.tags if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'")


def test_every_element_is_closed_and_every_table_has_its_caption_or_is_a_listing(page, read):
    found = read(page)
    assert found.open == []
    data = [attributes for tag, attributes in found.tags if tag == "table" and attributes["class"] == "data"]
    assert page.count('<table class="data"><caption') == len(data) > 5


def test_headings_descend_one_level_at_a_time(page, read):
    levels = [int(tag[1]) for tag, _ in read(page).tags if tag in {"h1", "h2", "h3"}]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_every_link_has_its_target(page, read):
    found = read(page)
    targets = {attributes.get("id") for _, attributes in found.tags}
    links = [attributes["href"] for tag, attributes in found.tags if tag == "a"]
    assert links == ["#r0", "#r1", "#r2", "#r3", "#r4"]
    assert all(link and link[1:] in targets for link in links)


def test_simulated_counts_are_marked_and_never_called_times(page):
    assert "<b>Simulated counts.</b>" in page
    assert "faster" not in page
    assert "Figures are simulated counts" in page


def test_what_happened_is_told(page, read):
    for words in (
        "r2 (vectorise-128) is the best of 5 rounds",
        "rejected by ada",
        "More instructions for no fewer bytes.",
        "WRONG_VALUES",
        "COMPILE_FAILED",
        "The last 4 elements of the last row were never written",
        "count - WIDTH",
        "racecheck: the kernel uses no shared memory",
        "71930211, 5583",
        "(−87.5 %) at the size that ran, held",
        "uncoalesced",
        "no usable reply",
        "The repair budget of 2 is spent.",
    ):
        assert words in "".join(read(page).text), words


def test_paths_of_this_machine_are_not_told(page):
    assert "/home/me" not in page
    assert "/scratch" not in page
    assert "26_GELU_.py" in page


@pytest.mark.long
def test_measured_sessions_tell_times_with_intervals(gpu_session, read):
    text = "".join(read(render(gpu_session)).text)
    assert "Measured on NVIDIA H200" in text
    assert "simulated" not in text
    assert "0.989× (0.985–0.993)" in text
    assert "Compilation" in text or "compilation 420 ms" in text


def test_a_session_without_rounds_says_why(empty_session, read):
    text = "".join(read(render(empty_session)).text)
    assert "No round has finished." in text
    assert "The author declined: attention" in text


def test_a_session_in_which_nothing_passed_says_so(session, read):
    last = session.rounds[4]
    text = "".join(read(render(replace(session, rounds=(replace(last, number=0),)))).text)
    assert "None of 1 round passed." in text


def test_a_round_without_any_reply_is_told(session, read):
    bare = replace(
        session.rounds[0], attempts=(), comparison=None, decisions=(), note="The server cannot be reached."
    )
    text = "".join(read(render(replace(session, rounds=(bare,)))).text)
    assert "The server cannot be reached." in text
    assert "no candidate" in text


@pytest.mark.long
def test_a_candidate_that_could_not_be_evaluated_is_told(session, read):
    attempt = replace(session.rounds[1].attempts[0], evaluation=None, problem="The worker died.")
    item = replace(session.rounds[1], attempts=(attempt,), comparison=None, decisions=())
    text = "".join(read(render(replace(session, rounds=(session.rounds[0], item)))).text)
    assert "not evaluated" in text
    assert "The worker died." in text


def test_the_report_replaces_an_older_one_and_leaves_nothing_else(session, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old")
    write_report(session, str(target))
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]


def test_unpaired_surrogates_and_hidden_characters_are_written_out(session, tmp_path):
    hidden = "a\ud800b\u202ec\x00d"
    item = replace(session.rounds[4], note=hidden)
    write_report(
        replace(session, author=hidden, rounds=(*session.rounds[:4], item)), str(tmp_path / "r.html")
    )
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert text.count("a⟨U+D800⟩b⟨U+202E⟩c⟨U+0000⟩d") == 2
    assert "\u202e" not in text


def test_a_missing_folder_is_named(session, tmp_path):
    with pytest.raises(UsageError, match="does not exist; create it or choose another"):
        write_report(session, str(tmp_path / "no" / "r.html"))


def test_a_folder_as_target_is_refused_with_a_file_name(session, tmp_path):
    with pytest.raises(UsageError, match=r"is a folder; name a file in it, such as .*gelu\.html"):
        write_report(session, str(tmp_path))


def test_a_place_that_cannot_be_written_is_one_sentence(session):
    with pytest.raises(StoreError, match=r"could not be written to /proc/r\.html"):
        write_report(session, "/proc/r.html")


def test_rounds_are_folded_but_for_the_best_and_the_last(session):
    page = render(session)
    opened = dict(re.findall(r'<section id="(r\d+)"><details class="round"( open)?>', page))
    best = next(row.revision for row in rows(session) if row.best)
    assert len(opened) == len(session.rounds)
    assert {name for name, state in opened.items() if state} == {best, f"r{session.rounds[-1].number}"}


def test_paper_and_a_link_to_a_round_show_what_is_folded(page):
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "section:target > .round::details-content" in style
    assert ".round::details-content" in style.partition("@media print")[2]
    for target in re.findall(r'href="#(r\d+)"', page):
        assert f'<section id="{target}"><details' in page  # the target itself is never hidden


def test_the_table_of_rounds_says_each_ones_stage(session, page):
    table = page.partition("Figures are")[2].partition("</table>")[0]
    for item in session.rounds:
        assert f">{item.stage.value}</span>" in table


def test_a_stop_by_a_person_is_told_by_their_name(session):
    page = render(replace(session, stopped="person:root stopped the session at round 1: enough"))
    assert "Ended: root stopped it at round 1: “enough”" in page
    assert "person:root stopped" not in page
