"""While a candidate's code runs, the judge is out of sight, and what its lines do to the process is told."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.process.transcript import RecordHandler

pytestmark = pytest.mark.slow


def kinds(evaluation):
    return {item.kind for item in evaluation.findings if item.severity is Severity.FLAG}


def with_lines(judge, lines):
    """The right kernel, and at its import these lines, each on a line of its own."""
    return judge.source("relu") + "\n\n" + lines + "\n"


ACTIONS = {
    "getattr(sys, '_get' + 'frame')()": "reaches-inside",
    "inspect.stack()": "reaches-inside",
    "gc.get_objects()": "reaches-inside",
    "ctypes.CDLL(None)": "reaches-inside",
    "ModelNew.forward.__code__ = ModelNew.forward.__code__": "reaches-inside",
    "os.fork() == 0 and os._exit(0)": "starts-processes",
    "socket.socket().close()": "opens-socket",
    "numpy.save(os.environ['HOME'] + '/x.npy', numpy.zeros(3))": "writes-files",
}


@pytest.mark.long
def test_what_its_lines_do_is_told_with_the_line_and_decides_nothing(judge):
    source = with_lines(
        judge, "import ctypes, gc, inspect, os, socket, sys\nimport numpy\n" + "\n".join(ACTIONS)
    )
    evaluation = judge("relu", source)
    assert evaluation.passed, evaluation.summary
    first = len(source.splitlines()) - len(ACTIONS) + 1
    told = [item for item in evaluation.findings if item.kind in ACTIONS.values()]
    found = {item.line: item for item in told}
    assert {line: item.kind for line, item in found.items()} == dict(enumerate(ACTIONS.values(), first))
    assert {item.severity for item in found.values()} == {Severity.FLAG}
    assert all(f"line {line}" in item.message for line, item in found.items())


@pytest.mark.long
def test_honest_use_of_the_library_is_not_told(judge):
    honest = """
import collections, dataclasses, enum, logging, typing
Pair = collections.namedtuple("Pair", "a b")
class Named(typing.NamedTuple):
    a: int
@dataclasses.dataclass(frozen=True)
class Plan:
    tile: int = 1
Colour = enum.Enum("Colour", "red green")
logging.getLogger("kernel").warning("compiling")
open(__file__).read()
"""
    evaluation = judge("relu", with_lines(judge, honest))
    assert evaluation.passed, evaluation.summary
    assert not kinds(evaluation) & {"reaches-inside", "writes-files", "starts-processes", "opens-socket"}


def test_it_is_told_even_of_a_candidate_that_ends_the_process(judge):
    evaluation = judge("relu", with_lines(judge, "import gc, os\ngc.get_objects(); os._exit(0)"))
    assert evaluation.outcome == Judged(verdict=Verdict.EXITED)
    assert "reaches-inside" in kinds(evaluation)


@pytest.mark.long
def test_the_judges_modules_are_out_of_sight(judge):
    look = """
import sys
if any(name.startswith("cutegen") for name in sys.modules):
    raise RuntimeError("seen in sys.modules")
if any("cutegen" in text for text in sys.argv):
    raise RuntimeError("seen in sys.argv")
try:
    import cutegen_nb.evaluator.numerics.tolerance
except ModuleNotFoundError:
    pass
else:
    raise RuntimeError("imported")
"""
    assert judge("relu", with_lines(judge, look)).passed


SOMEBODY = """
import os, sys
def somebody(*_):
    if "cutegen_nb" in sys.modules:
        os.write(1, b"in the judge's turn")
"""


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "later",
    [
        "import signal; signal.signal(signal.SIGALRM, somebody); signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)",
        "import gc; gc.callbacks.append(somebody); gc.set_threshold(10)",
        "import sys; sys.setprofile(somebody)",
        "import sys; sys.settrace(somebody)",
    ],
)
def test_nothing_of_the_candidates_runs_in_the_judges_turn(judge, later):
    evaluation = judge("relu", with_lines(judge, SOMEBODY + later))
    assert evaluation.passed, evaluation.summary
    assert "in the judge's turn" not in evaluation.log


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (
            "import builtins\nbuiltins.next = lambda items, *other: other[0] if other else items.__next__()",
            "builtins.next",
        ),
        ("import json\njson.dumps = lambda *_, **__: '{}'", "json.dumps"),
        (
            "for kind in object.__subclasses__():\n    if kind.__name__ == 'Tolerance': kind.element = 1e9",
            "Tolerance.element",
        ),
    ],
)
def test_what_the_judge_rests_on_is_found_replaced(judge, lines, name):
    evaluation = judge("relu", with_lines(judge, lines))
    assert evaluation.outcome == Judged(verdict=Verdict.CHEATED), evaluation.summary
    assert evaluation.findings[0].kind == "harness-replaced"
    assert name in str(evaluation.exhibits[0].trace)


def test_a_result_that_comes_while_the_candidates_code_runs_is_forged():
    heard = RecordHandler(lambda _: None)
    for record in (
        {"kind": "stage", "text": "running"},
        {"kind": "entering"},
        {"kind": "result", "evaluation": {}},
    ):
        heard(record)
    assert heard.result is None
    assert "result" in heard.forged
    assert heard.stage == "running"


def test_a_look_at_frames_in_the_judges_turn_decides():
    heard = RecordHandler(lambda _: None)
    for record in ({"kind": "entering"}, {"kind": "leaving"}):
        heard(record)
    heard({"kind": "reached", "finding": "writes-files", "message": "", "line": 3})
    assert heard.forged == ""
    heard({"kind": "reached", "finding": "reaches-inside", "message": "", "line": 3})
    assert "while the judge ran" in heard.forged


def test_a_look_at_every_threads_frames_decides_in_any_turn():
    heard = RecordHandler(lambda _: None)
    heard({"kind": "entering"})
    heard({"kind": "reached", "finding": "reaches-threads", "message": "", "line": 3})
    heard({"kind": "leaving"})
    heard({"kind": "result", "evaluation": {}})
    assert "frames of all threads" in heard.forged


def test_a_result_after_it_has_left_is_taken():
    heard = RecordHandler(lambda _: None)
    result = {"kind": "result", "evaluation": {}}
    for record in ({"kind": "entering"}, {"kind": "leaving"}, result):
        heard(record)
    assert heard.result == result
    assert heard.forged == ""
