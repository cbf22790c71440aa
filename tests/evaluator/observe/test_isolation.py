"""While a candidate's code runs, the judge is out of sight, and what its lines do to the process is told."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.process.transcript import RecordHandler


def kinds(evaluation):
    return {item.kind for item in evaluation.findings if item.severity is Severity.FLAG}


def with_lines(judge, lines):
    """The right kernel, and at its import these lines, each on a line of its own."""
    return judge.source("relu") + "\n\n" + lines + "\n"


@pytest.mark.parametrize(
    ("lines", "kind"),
    [
        ("import sys\ngetattr(sys, '_get' + 'frame')()", "reaches-inside"),
        ("import inspect\ninspect.stack()", "reaches-inside"),
        ("import gc\ngc.get_objects()", "reaches-inside"),
        ("import ctypes\nctypes.CDLL(None)", "reaches-inside"),
        ("ModelNew.forward.__code__ = ModelNew.forward.__code__", "reaches-inside"),
        ("import os\nif os.fork() == 0: os._exit(0)", "starts-processes"),
        ("import socket\nsocket.socket().close()", "opens-socket"),
        ("import os, numpy\nnumpy.save(os.environ['HOME'] + '/x.npy', numpy.zeros(3))", "writes-files"),
    ],
)
def test_what_its_lines_do_is_told_with_the_line_and_decides_nothing(judge, lines, kind):
    source = with_lines(judge, lines)
    evaluation = judge("relu", source)
    assert evaluation.passed, evaluation.summary
    found = next(item for item in evaluation.findings if item.kind == kind)
    assert found.severity is Severity.FLAG
    assert found.line == len(source.splitlines())
    assert f"line {found.line}" in found.message


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


def test_the_judges_modules_are_out_of_sight(judge):
    look = """
import sys
if any(name.startswith("cutegen") for name in sys.modules):
    raise RuntimeError("seen in sys.modules")
if any("cutegen" in text for text in sys.argv):
    raise RuntimeError("seen in sys.argv")
try:
    import cutegen_nb.gpu.correctness
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


@pytest.mark.parametrize(
    ("lines", "name"),
    [
        (
            "import builtins\nbuiltins.next = lambda items, *other: other[0] if other else items.__next__()",
            "builtins.next",
        ),
        ("import json\njson.dumps = lambda *_, **__: '{}'", "json.dumps"),
        (
            "for kind in object.__subclasses__():\n    if kind.__name__ == 'Gate': kind.element = 1e9",
            "Gate.element",
        ),
    ],
)
def test_what_the_judge_rests_on_is_found_replaced_and_put_back(judge, lines, name):
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
    assert "judge was at work" in heard.forged


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
    assert heard.result is result
    assert heard.forged == ""
