"""A model's Markdown becomes HTML in which nothing acts."""

import pytest

from cutegen_nb.notebook.safe_markdown import markdown_html


def test_words_code_and_tables_are_shown():
    shown = markdown_html("**bold** `code`\n\n| a |\n|---|\n| 1 |\n")
    assert "<strong>bold</strong> <code>code</code>" in shown
    assert "<td>1</td>" in shown


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "[go](javascript:alert(1))",
        "![x](http://somewhere/pixel.png)",
        "<img src=x onerror=alert(1)>",
        '<p style="position:fixed">over</p>',
    ],
)
def test_nothing_acts_fetches_or_covers(text):
    shown = markdown_html(text)
    tags = [part.split(">")[0] for part in shown.split("<")[1:]]
    assert all(tag.strip("/") in {"p", "em", "br"} for tag in tags), shown


def test_a_link_keeps_its_text():
    assert "go" in markdown_html("[go](http://somewhere)")
