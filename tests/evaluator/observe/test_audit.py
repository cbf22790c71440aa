"""Audit events count where the candidate's own lines raise them, once a line."""

import sys

import pytest

from cutegen_nb.core.finding import ACCUSING
from cutegen_nb.evaluator.observe import audit
from cutegen_nb.evaluator.observe.audit import AuditListener


@pytest.fixture
def heard(tmp_path):
    """Run a source as the candidate's file, with every audit event of the process passed to a listener."""
    told = []
    listener = AuditListener(candidate=str(tmp_path / "candidate.py"), tell=told.append)
    listener._looking = True
    sys.addaudithook(listener._hear)  # as `listen` does; it cannot be removed, and is silent outside of `run`

    def run(source):
        code = compile(source, str(tmp_path / "candidate.py"), "exec")
        listener._looking = False
        try:
            exec(code, {"path": str(tmp_path / "file")})
        finally:
            listener._looking = True
        return [(one.kind, one.line) for one in told]

    return run


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("import sys; sys._getframe()", "reaches-inside"),
        ("import sys; getattr(sys, '_get' + 'frame')()", "reaches-inside"),
        ("import sys; sys._current_frames()", "reaches-threads"),
        ("import gc; gc.get_objects()", "reaches-inside"),
        ("import socket; socket.socket().close()", "opens-socket"),
        ("open(path, 'w').close()", "writes-files"),
        ("import pathlib; pathlib.Path(path).write_text('')", "writes-files"),
    ],
)
def test_an_action_is_told_with_its_line(heard, line, kind):
    assert heard(f"x = 1\n{line}\n") == [(kind, 2)]


@pytest.mark.parametrize(
    "source",
    [
        "open(__import__('os').devnull).close()",
        "import typing\nclass Pair(typing.NamedTuple):\n    x: int\n",
        "import logging\nlogging.getLogger('a').debug('b')\n",
    ],
)
def test_reading_and_what_the_library_does_for_itself_are_not_told(heard, source):
    assert heard(source) == []


def test_a_line_that_repeats_itself_is_told_once(heard):
    assert heard("import sys\nfor _ in range(3):\n    sys._getframe()\n") == [("reaches-inside", 3)]


def test_every_kind_is_one_that_only_a_person_may_approve():
    assert {kind for kind, _ in audit._EVENTS.values()} <= ACCUSING
