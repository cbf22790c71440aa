"""Records of a worker as the evaluator hears them: nothing that a candidate wrote passes for our own output."""

from __future__ import annotations

import pytest

from cutegen_nb.evaluator.process.transcript import RecordHandler, escape_for_print


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one line, ä and 中", "one line, ä and 中"),
        ("tab\tstays", "tab\tstays"),
        ("PASSED\nPASSED  relu", "PASSED\n    PASSED  relu"),
        ("a\r\nb\x0bc\u2028d", "a\n    b\n    c\n    d"),
        ("\x1b[2K\x1b[1APASSED", "\\x1b[2K\\x1b[1APASSED"),
        ("\u202eDESSAP", "\\u202eDESSAP"),
        ("back\x08space\x00", "back\\x08space\\x00"),
    ],
)
def test_text_cannot_print_a_line_that_passes_for_ours(text, shown):
    assert escape_for_print(text) == shown


def test_every_text_of_a_result_is_escaped_and_numbers_stay():
    heard = RecordHandler(lambda _: None)
    texts = {
        "findings": [{"message": "a\nb", "line": 3}],
        "summary": "c\nd",
        "exhibits": [{"trace": ["e\nf"]}],
    }
    heard({"kind": "result", "evaluation": {**texts, "device": "simulator"}})
    assert heard.result["evaluation"] == {
        "findings": [{"message": "a\n    b", "line": 3}],
        "summary": "c\n    d",
        "exhibits": [{"trace": ["e\n    f"]}],
        "device": "simulator",
    }
    failed = RecordHandler(lambda _: None)
    failed({"kind": "error", "error": "ProblemError", "message": "g\nh"})
    assert failed.result["message"] == "g\n    h"


def test_stages_are_told_as_they_come_escaped_and_cut():
    said = []
    heard = RecordHandler(said.append)
    for text in ("importing", "running\nPASSED", "x" * 1000):
        heard({"kind": "stage", "text": text})
    assert said == ["importing", "running\n    PASSED", "x" * 200]
    assert heard.stage == "x" * 200


def test_seeds_are_given_after_the_import_and_the_first_result_stays():
    heard = RecordHandler(lambda _: None, [1, 2])
    assert heard({"kind": "stage", "text": "importing"}) is None
    assert heard({"kind": "imported"}) == {"seeds": [1, 2]}
    heard({"kind": "result", "evaluation": {"device": "first"}})
    heard({"kind": "result", "evaluation": {"device": "second"}})
    assert heard.result["evaluation"]["device"] == "first"


def test_what_is_reached_is_listed_twenty_times_at_most_with_lines_that_are_lines():
    heard = RecordHandler(lambda _: None)
    heard({"kind": "entering"})
    for line in (3, -1, "four", None, *range(100)):
        heard({"kind": "reached", "finding": "writes-files", "message": "it writes\na file", "line": line})
    assert len(heard.reached) == 20
    assert [item.line for item in heard.reached[:5]] == [3, 0, 0, 0, 0]
    assert heard.reached[0].message == "it writes\n    a file"
    assert heard.forged == ""
