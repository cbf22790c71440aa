"""HTML section and chart of a population."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from cutegen_nb.core.round import Epoch
from cutegen_nb.report.html.population import population_section
from cutegen_nb.report.html.session_page import render
from cutegen_nb.report.markup import Style
from cutegen_nb.testing.examples import evolved_session


class Text(HTMLParser):
    """Text of a piece of HTML, and the text of every cell by row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"} and self.rows:
            self.rows[-1].append("")

    def handle_data(self, data):
        self.words.append(data)
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def evolved():
    return evolved_session()


def test_a_row_tells_a_kernels_descent_and_what_became_of_it(evolved):
    read = ([cell.strip() for cell in row] for row in Text(population_section(evolved)).rows)
    rows = {row[0].split()[0]: row for row in read}

    assert rows["r0"][1] == "before the first epoch"
    assert rows["r1"][1] == "1, extend of r0"
    assert rows["r2"][1] == "1, request of r0"
    assert rows["r3"][1] == "1, invent of r0"
    assert rows["r2"][-1] == "1", "selection kept it after epoch 1"
    assert rows["r1"][-1] == "–"
    assert len({len(row) for row in rows.values()}) == 1


def test_the_epochs_tell_duels_decisions_and_claims_that_are_not_fulfilled(evolved):
    told = Text(population_section(evolved)).text

    for words in (
        "r2 against r1",
        "the only one with tiles",
        "ada",
        "pipelined: the only one with tiles",
    ):
        assert words in told, told


@pytest.mark.long
def test_a_chain_has_no_section(session):
    assert population_section(session) == ""
    assert 'id="population"' not in render(session)


def test_the_report_shows_the_population_under_a_heading_of_its_own(evolved):
    page = render(evolved)

    assert page.count('<h2 id="population">Population</h2>') == 1
    assert population_section(evolved) in page


def test_a_draft_epoch_is_shown_before_it_is_stored(evolved):
    draft = Epoch(number=2, members=evolved.epochs[0].members)
    before, with_draft = (Text(population_section(evolved, draft=one)).text for one in (None, draft))

    assert "Epoch 2" not in before
    assert "Epoch 2" in with_draft


def test_the_record_has_inline_styles_alone(evolved):
    page = population_section(evolved, style=Style.RECORD, drawn=False)

    assert "<svg" not in page
    assert "class=" not in page
    assert "var(" not in page
