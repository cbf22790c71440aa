"""The drawing of a lineage has a row for each revision and escapes every word."""

import xml.etree.ElementTree as ET
from dataclasses import replace

from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.html import lineage
from cutegen_nb.report.html.lineage import lineage_section, lineage_svg
from cutegen_nb.testing.examples import evolved_session, session_of


def test_each_revision_has_its_row():
    drawn = lineage_svg(session_of(Relation.FIRST, Relation.FASTER, Relation.SLOWER))
    texts = "".join(ET.fromstring(str(drawn)).itertext())
    assert all(name in texts for name in ("r0", "r1", "r2"))


def test_a_session_without_a_kernel_has_no_section():
    assert lineage_section(replace(session_of(Relation.FIRST), rounds=())) == ""


def test_names_stay_text():
    drawn = str(lineage_section(evolved_session(words="<script>alert(1)</script>")))
    assert "<script" not in drawn


def test_of_a_long_session_the_newest_rows_are_drawn(monkeypatch):
    monkeypatch.setattr(lineage, "_MOST", 4)
    session = session_of(Relation.FIRST, *[Relation.SLOWER] * 20)
    texts = "".join(ET.fromstring(str(lineage_svg(session))).itertext())
    assert "r20" in texts
    assert (
        len(texts)
        < len("".join(ET.fromstring(str(lineage_svg(session_of(*[Relation.SLOWER] * 4)))).itertext())) * 2
    )
