"""Templates escape every value, invisible characters are written out, styles are inline in a record."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest
from markupsafe import Markup

from cutegen_nb.core.layout import LayoutKind, LayoutRecord, TvLayout
from cutegen_nb.report import markup
from cutegen_nb.report.html import correctness, diff, lines, rounds
from cutegen_nb.report.html.layouts import layouts
from cutegen_nb.report.html.lineage import lineage_section
from cutegen_nb.report.markup import Style, fill, look, visible, without_math

TEMPLATES = sorted((Path(markup.__file__).parent / "templates").glob("*.jinja"))
LAYOUT = LayoutRecord(
    kind=LayoutKind.COPY,
    name="tile",
    text="(8,64):(64,1)",
    line=3,
    element="f16",
    atom="cp.async",
    views=(TvLayout(role="source", text="((4,8),2):((2,8),1)", tiler="[32:1;16:1]"),),
)


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_switches_escaping_off(template):
    text = template.read_text(encoding="utf-8")

    assert not re.search(r"\|\s*safe\b|autoescape|Markup", text)


@pytest.mark.parametrize("style", Style)
def test_a_value_is_escaped_and_markup_is_not_escaped_twice(style):
    for text, expected in (
        ("<b>&\"'", "&lt;b&gt;&amp;&#34;&#39;"),
        (Markup("<b>x</b>"), "<b>x</b>"),
        ("a\u202eb", "a⟨U+202E⟩b"),
    ):
        environment = markup._environment(style)
        assert environment.from_string("{{ value }}").render(value=text) == expected


def test_a_value_that_a_template_needs_and_does_not_get_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        fill("log", Style.PAGE)


def test_ascii_and_ordinary_letters_stay_as_they_are():
    for text in ("x = 1\n\ty", "é 中文 ×", ""):
        assert visible(text) == text
    assert visible("\x00\x1b\u200b\ud800") == "⟨U+0000⟩⟨U+001B⟩⟨U+200B⟩⟨U+D800⟩"


def test_a_name_is_a_class_on_the_page_and_a_style_in_a_record():
    assert look(Style.PAGE, "card") == ' class="card"'
    assert look(Style.RECORD, "card").startswith(' style="border:1px solid')
    assert look(Style.RECORD, "no such name") == ""


def test_mathjax_is_told_to_leave_a_notebooks_output_alone():
    assert without_math("<p>$0</p>") == '<div class="mathjax_ignore tex2jax_ignore"><p>$0</p></div>'


@pytest.mark.parametrize("style", Style)
def test_every_view_shows_a_models_text_as_text(session, style, payload, poison, harmless):
    """Source, rationale, log, findings, names of layouts and revisions."""
    whole = poison(session, payload)
    source = f"# {payload}\nx = '''{payload}'''\n"
    evaluation = whole.rounds[0].attempts[-1].evaluation
    record = poison(LAYOUT, payload)
    views = [
        rounds.overview(whole, style=style),
        *(rounds.section(whole, item, style=style) for item in whole.rounds),
        correctness.render(whole.rounds[4].evaluation, source, style=style),
        lines.render(evaluation.profile, source, style=style),
        diff.render("x = 1\n", source, old_name=payload, new_name=payload, style=style),
        layouts(
            (record,), before=(LAYOUT,), names=(payload, payload), style=style, drawn=style is Style.PAGE
        ),
    ]

    for view in views:
        assert harmless(view, payload) > 0
    if style is Style.PAGE:
        assert harmless(lineage_section(whole), payload[:11]) > 0
