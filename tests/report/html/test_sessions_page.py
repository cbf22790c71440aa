from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from cutegen_nb.analysis.history.session_summary import summarise
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.report.html.sessions_page import finished_kernels, render, write_sessions_page
from cutegen_nb.testing import examples


def session(name: str, *seconds: float, problem: str = ""):
    made = examples.session_of(Relation.FIRST, *[Relation.ESTIMATED_FASTER] * (len(seconds) - 1), name=name)
    rounds = tuple(
        replace(item, comparison=replace(item.comparison, estimated_s=value))
        for item, value in zip(made.rounds, seconds, strict=True)
    )
    return replace(made, rounds=rounds, problem=replace(made.problem, source=f"{problem or name} = 1\n"))


SESSIONS = {item.name: item for item in (session("relu", 8e-6, 2e-6), session("gelu", 5e-6))}
SUMMARIES = [summarise(item) for item in SESSIONS.values()]


def load(name, numbers):
    whole = SESSIONS[name]
    return replace(whole, rounds=tuple(item for item in whole.rounds if item.number in numbers))


def test_the_gallery_has_problem_first_and_last_kernel_with_gain_and_device():
    page = render(SUMMARIES, {}, load)
    gallery = page[page.index('id="gallery"') :]
    assert "<b>4.00×</b> 8.00 µs → 2.00 µs estimated" in gallery
    assert "simulator (sm_80); session relu by test, 2 rounds" in gallery
    for title in (
        "Problem",
        "First kernel, r0",
        "Last kernel, r1: coalesce",
        "Change from the first to the last",
    ):
        assert title in gallery
    assert "Kernel, r0: no later one was faster" in gallery


def test_of_one_problem_and_device_the_fastest_kernel_is_shown():
    slow, fast = session("slow", 9e-6, problem="p"), session("fast", 3e-6, 1e-6, problem="p")
    found = finished_kernels([summarise(fast), summarise(slow)])
    assert [item.name for item in found] == ["fast"]


def test_the_policy_of_the_page_allows_its_own_script_alone():
    page = str(render(SUMMARIES, {}, load))
    allowed = re.search(r"script-src 'sha256-([^']+)'", page)
    script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
    assert allowed is not None
    assert base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() == allowed[1]
    assert page.count("<script") == 1


def test_a_report_beside_the_page_is_linked(tmp_path):
    (tmp_path / "relu.html").write_text("its report")
    path = write_sessions_page(SUMMARIES, {}, load, str(tmp_path / "all.html"), tmp_path)
    page = (tmp_path / "all.html").read_text()
    assert path == str(tmp_path / "all.html")
    assert '<a href="./relu.html">Its report</a>' in page
    assert "cutegen-nb report gelu -o gelu.html" in page


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        write_sessions_page(SUMMARIES, {}, load, str(tmp_path / "none" / "all.html"), tmp_path)


def test_a_store_without_sessions_gives_a_page_that_says_so():
    assert "No session is stored yet." in render([], {}, load)
