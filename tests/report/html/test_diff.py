from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from cutegen_nb.report.html.diff import render
from cutegen_nb.report.markup import Style, visible

OLD = "import torch\n\n\ndef f(x):\n    y = x + 1  # one\n    return y\n" + "".join(
    f"a{i} = {i}\n" for i in range(20)
)
NEW = OLD.replace("x + 1", "x + 2").replace("a19 = 19\n", "")


class Cells(HTMLParser):
    """Text of each row's cells."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")
            self.inside = True

    def handle_endtag(self, tag):
        if tag == "td":
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


@pytest.mark.parametrize("style", Style)
def test_rows_rebuild_both_sources(style):
    rows = Cells(render(OLD, NEW, style=style)).rows
    assert "".join(f"{code}\n" for old, _, _, code in rows if old) == OLD
    assert "".join(f"{code}\n" for _, new, _, code in rows if new) == NEW


@pytest.mark.parametrize("style", Style)
def test_signs_stand_beside_the_colours(style):
    page = render(OLD, NEW, style=style)
    signs = [sign for _, _, sign, _ in Cells(page).rows if sign]
    assert signs == ["−", "+", "−"]
    assert page.count("<ins") == 1
    assert page.count("<del") == 2


def test_the_changed_word_alone_is_marked():
    page = render(OLD, NEW, style=Style.PAGE)
    marks = [unescape(re.sub("<[^>]*>", "", mark)) for mark in re.findall(r'mark-\w+">(.*?)</span></', page)]
    assert [mark[:1] for mark in marks] == ["1", "2"]


def test_the_record_survives_a_notebooks_sanitiser():
    """No class, script, variable or text colour: only inline styles with literal colours."""
    page = render(OLD, NEW)
    assert "class=" not in page
    assert "var(" not in page
    assert "<style" not in page
    assert "currentColor" not in page
    styles = re.findall(r'style="([^"]*)"', page)
    assert styles
    assert not [style for style in styles if re.search(r"(^|;)\s*color:", style)]


def test_a_small_change_makes_a_small_record():
    assert len(render(OLD, NEW)) < 30_000


def test_equal_sources_say_so():
    assert render(OLD, OLD, old_name="r1", new_name="r2") == "<p>r2 is identical to r1.</p>"


@pytest.mark.parametrize("style", Style)
def test_source_text_is_never_markup(style):
    page = render("a = 1\n", "a = '</td><script>x</script>'\n", style=style)
    assert "<script" not in page


def test_characters_that_reorder_a_line_are_shown():
    assert visible("a\u202eb\u200bc\x1b[0m") == "a⟨U+202E⟩b⟨U+200B⟩c⟨U+001B⟩[0m"
    assert visible("tab\tand é, 中文 and ×") == "tab\tand é, 中文 and ×"
