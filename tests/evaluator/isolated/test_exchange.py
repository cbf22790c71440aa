"""A candidate that passed is judged once more where it cannot reach the judge."""

from __future__ import annotations

import asyncio
import socket
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from cutegen_nb.analysis.problem.workload import longest_sum
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import CutegenError, DeviceUnavailable, EvaluatorError, ProblemError
from cutegen_nb.core.evaluation import CheckResult, CheckState, Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.finding import Severity
from cutegen_nb.evaluator.catalog.integrity import OUTSIDE
from cutegen_nb.evaluator.isolated import exchange as outside
from cutegen_nb.evaluator.isolated.reconcile import IsolatedFinding, reconciled, with_check
from cutegen_nb.evaluator.process import process_tree as sandbox
from cutegen_nb.evaluator.process.channel import Channel, MalformedRecord
from cutegen_nb.evaluator.process.exit_report import raise_reported_error
from cutegen_nb.evaluator.process.transcript import RecordHandler
from cutegen_nb.evaluator.process.worker_handle import WorkerRun
from cutegen_nb.evaluator.worker import tensor_files
from cutegen_nb.exploits.library import chosen

pytestmark = pytest.mark.slow

WRONG = Judged(verdict=Verdict.WRONG_VALUES)
THEN = """
class Then(ModelNew):
    def forward(self, x):
        y = super().forward(x)
        {body}

ModelNew = Then
"""
ONLY_WHERE_IT_IS_JUDGED = """
        try:
            raise LookupError
        except LookupError as error:
            frame = error.__traceback__.tb_frame
        names = set()
        while frame is not None:
            names |= set(frame.f_globals)
            frame = frame.f_back
        return y if 'Trial' in names else y * 0.5
"""
PASSED = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="Right inside.", device="simulator")


def outside_check(evaluation):
    return next(item for item in evaluation.checks if item.name == OUTSIDE.name)


def right(judge, then="return y"):
    """The right kernel, and then these lines."""
    return judge.source("relu") + THEN.format(body=then)


@pytest.fixture(scope="module")
def quick(judge_class, template):
    """An evaluator whose checks above tier A take no time, but this one."""
    made = judge_class(template=template, device="simulator", deadline_s=15.0, memory_bytes=1 << 30)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "cutegen_nb.evaluator.evaluation_case.HIGHER_TIERS_ON_SIMULATOR_S", dict.fromkeys(Tier, 0.0)
        )
        yield made
    made.close()


@pytest.fixture(scope="module")
def outside_of(quick):
    """Only the outside judgement of a candidate, as if it had passed inside."""

    def judged(source, given="relu", within_s=None):
        problem, candidate = quick.problem(given), quick.candidate(source)

        async def run():
            facts = await quick.evaluator.facts(problem, quick.stages.append)
            order = outside.IsolatedRequest(
                problem=problem,
                candidate=candidate,
                workload=facts.scaled,
                longest_sum=longest_sum(facts.scaled.graph),
                gates=[],
                added_inputs=facts.admission.added_inputs,
            )
            judging = outside.judge_isolated(order, quick.evaluator._workers, quick.stages.append)
            return reconciled(PASSED, *await asyncio.wait_for(judging, within_s))

        return asyncio.run(run())

    return judged


def left_behind(judge):
    """Folders and processes of workers that have ended; a supervisor takes a moment to be gone."""
    server = judge.evaluator._workers.server
    until = time.monotonic() + 5.0
    while sandbox.descendants(server.process_id) and time.monotonic() < until:
        time.sleep(0.01)
    folders = [item.name for item in server.folder("").iterdir() if item.name.startswith("run-")]
    return [*folders, *sandbox.descendants(server.process_id)]


def test_an_honest_kernel_passes_and_the_report_says_what_ran(quick):
    evaluation = quick("relu", "relu", Tier.B)
    assert evaluation.passed, evaluation.summary
    check = outside_check(evaluation)
    assert check.state is CheckState.RAN, check.note
    assert check.note.startswith("3 calls: inputs of a fresh seed; inputs ")
    assert "digest of the seeds" in check.note
    assert OUTSIDE.name in evaluation.correctness.checks
    assert not left_behind(quick)


def test_tier_a_does_without(quick):
    evaluation = quick("relu", "relu", Tier.A)
    assert evaluation.passed
    assert OUTSIDE.name not in {item.name for item in evaluation.checks}


@pytest.mark.long
@pytest.mark.parametrize("candidate", ["scale", "scale_renamed"])
def test_parameters_travel_redrawn_where_the_candidate_has_them_and_as_drawn_where_not(quick, candidate):
    evaluation = quick("scale", candidate, Tier.B)
    assert evaluation.passed, evaluation.summary
    assert outside_check(evaluation).state is CheckState.RAN


@pytest.mark.first(1)
@pytest.mark.parametrize("name", ["inside_forgery", "inside_forgery_variant"])
def test_a_verdict_forged_inside_is_refused_outside(quick, name):
    exploit = next(item for item in chosen((name,)) if item.name == name)
    inside = asyncio.run(quick.evaluator.evaluate(exploit.problem, exploit.candidate, quick.stages.append))
    assert inside.passed, "if a check inside refuses it by now, the exploit needs a stronger one"
    found = asyncio.run(
        quick.evaluator.evaluate(exploit.problem, exploit.candidate, quick.stages.append, Tier.B)
    )
    assert found.outcome == WRONG
    assert found.findings[0].kind == "wrong-outside"
    assert outside_check(found).state is CheckState.FOUND
    assert not found.correctness.outputs[0].matches
    exhibit = found.exhibits[0]
    assert exhibit.inputs
    assert exhibit.outputs
    assert exhibit.expected
    assert exhibit.trace[0].startswith("inside: Right for")
    assert "cheat" not in exhibit.statement.lower()
    assert not left_behind(quick)


@pytest.mark.long
def test_a_verdict_forged_beside_pytorchs_right_values_is_refused_outside(quick):
    exploit = next(item for item in chosen(("inside_forgery",)) if item.name.endswith("variant2"))
    found = asyncio.run(
        quick.evaluator.evaluate(exploit.problem, exploit.candidate, quick.stages.append, Tier.B)
    )
    assert found.outcome == Judged(verdict=Verdict.NOT_OWN_WORK), found.summary
    assert found.findings[0].kind == "torch-compute"


@pytest.mark.long
def test_a_kernel_that_is_right_only_where_it_is_judged_is_refused(quick):
    evaluation = quick("relu", right(quick, ONLY_WHERE_IT_IS_JUDGED.strip()), Tier.B)
    assert evaluation.outcome == WRONG
    assert evaluation.findings[0].kind == "wrong-outside"
    assert evaluation.may_be_overruled


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("body", "verdict", "words"),
    [
        ("import os; os._exit(3)", Verdict.EXITED, "status 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", Verdict.CRASHED, "SIGSEGV"),
        ("raise RuntimeError('not here')", Verdict.CRASHED, "not here"),
        ("return y.half()", Verdict.WRONG_DTYPE, "float16"),
        ("return y[:1]", Verdict.WRONG_SHAPE, "shape"),
        ("return y, y", Verdict.WRONG_SHAPE, "2 outputs"),
        ("return 'text'", Verdict.WRONG_DTYPE, "str"),
        ("return torch.complex(y, y).conj()", Verdict.WRONG_DTYPE, "complex64"),
        ("return y.to_sparse()", Verdict.WRONG_DTYPE, "torch.sparse_coo"),
        ("return y.to(torch.uint16)", Verdict.WRONG_DTYPE, "uint16"),
        ("return y.to('meta')", Verdict.CRASHED, "kept in a file"),
        ("import os; os.mkdir(os.environ['HOME'] + '/output-0-0'); return y", Verdict.CRASHED, "directory"),
    ],
)
def test_a_fault_outside_is_the_verdict_in_a_sentence(quick, outside_of, body, verdict, words):
    evaluation = outside_of(right(quick, body))
    assert evaluation.outcome == Judged(verdict=verdict), evaluation.summary
    assert evaluation.summary.startswith(
        "The candidate passed in the judge's process and failed in a separate one: "
    )
    assert words in evaluation.summary
    assert not left_behind(quick)


@pytest.mark.long
def test_a_candidate_that_never_ends_outside_is_ended(quick, outside_of, monkeypatch):
    monkeypatch.setattr(quick.evaluator._workers, "_deadline_s", 3.0)
    evaluation = outside_of(right(quick, "while True: pass"))
    assert evaluation.outcome == Judged(verdict=Verdict.TIMED_OUT), evaluation.summary
    assert "Not finished after 3 s" in evaluation.summary
    assert not left_behind(quick)


@pytest.mark.long
def test_an_interrupt_while_it_runs_leaves_nothing(quick, outside_of):
    outside_of("relu")  # what is known of the problem is known
    with pytest.raises(TimeoutError):
        outside_of(right(quick, "while True: pass"), within_s=2.5)
    assert "running the candidate outside" in quick.stages
    assert not left_behind(quick)
    assert outside_of("relu").passed


SENDS = """import json, os, struct
        try: raise LookupError
        except LookupError as error: frame = error.__traceback__.tb_frame
        while 'setting' not in frame.f_locals: frame = frame.f_back
        nonce = frame.f_locals['setting']['nonce']
        def send(**record):
            body = json.dumps({'nonce': nonce, **record}).encode()
            folder = '/proc/self/fd/'
            open_ones = [n for n in os.listdir(folder) if os.path.lexists(folder + n)]
            number = next(int(n) for n in open_ones if 'socket' in os.readlink(folder + n))
            os.write(number, struct.pack('>I', len(body)) + body)
        send(kind='leaving')
        judged = {'_': 'Judged', 'verdict': 'CRASHED'}
        """


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "lines",
    [
        "send(kind='result', evaluation={'outcome': {'verdict': 'PASSED'}}); os._exit(0)",
        "send(kind='compared', evaluation={}); os._exit(0)",
        "send(kind='refused', evaluation={'outcome': 1}); os._exit(0)",
        "send(kind='refused', evaluation={'outcome': judged, 'summary': '', 'device': ''}); os._exit(0)",
    ],
)
def test_a_verdict_sent_from_the_candidates_process_is_shown_as_one(quick, outside_of, lines):
    evaluation = outside_of(right(quick, SENDS + lines))
    assert evaluation.outcome == Judged(verdict=Verdict.CHEATED), evaluation.summary
    assert evaluation.findings[0].kind == "forged-result"
    assert "in the result channel" in str(evaluation.exhibits[0].trace)


@pytest.mark.long
def test_outputs_that_are_announced_and_not_left_are_no_outputs(quick, outside_of):
    lines = """forms = [{'dtype': 'float32', 'shape': list(x.shape)}]
        for number in range(3): os.symlink('/dev/zero', f"{os.environ['HOME']}/output-{number}-0")
        send(kind='outputs', complete=True, sets=[forms] * 3); os._exit(0)"""
    evaluation = outside_of(right(quick, SENDS + lines))
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_SHAPE), evaluation.summary
    assert evaluation.findings[0].kind == "wrong-file"


def test_pytorch_in_place_of_a_kernel_outside_is_told_with_its_line(quick, outside_of):
    source = right(quick, "return torch.relu(x)")
    evaluation = outside_of(source)
    assert evaluation.outcome == Judged(verdict=Verdict.NOT_OWN_WORK), evaluation.summary
    assert evaluation.findings[0].kind == "torch-compute"
    assert "The values are right in the separate process, but PyTorch's aten.relu" in evaluation.summary
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "return torch.relu(x)" in text)
    assert evaluation.exhibits[0].lines == (line, line)


@pytest.mark.long
def test_what_pytorch_prepares_at_the_first_call_is_no_cheat(quick, outside_of):
    body = "self.kept = getattr(self, 'kept', None) or float((x * 2).sum()); return y"
    assert outside_of(right(quick, body)).passed


@pytest.mark.long
@pytest.mark.parametrize("sets", ["[[{'dtype': 'float32', 'shape': [float('nan'), 1]}]]", "7", "[7]"])
def test_whatever_is_announced_raises_nothing_here(quick, outside_of, sets):
    lines = f"send(kind='outputs', complete=1, sets={sets}, work=7); os._exit(0)"
    evaluation = outside_of(right(quick, SENDS + lines))
    assert evaluation.outcome == Judged(verdict=Verdict.WRONG_SHAPE), evaluation.summary


@pytest.mark.long
def test_a_candidate_cannot_shut_its_folder_against_the_judge(quick, outside_of):
    evaluation = outside_of(right(quick, "import os; os.chmod(os.environ['HOME'], 0); return y"))
    assert evaluation.outcome == Judged(verdict=Verdict.CRASHED), evaluation.summary
    assert "Operation not permitted" in evaluation.summary
    assert not left_behind(quick)


def test_what_cannot_be_moved_is_told_and_holds_up_nobody(outside_of, monkeypatch):
    def failing(*_):
        raise PermissionError("not yours")

    monkeypatch.setattr(outside, "_work", failing)
    with pytest.raises(EvaluatorError, match="not yours"):
        outside_of("relu")


@pytest.mark.parametrize("shape", ["1" * 99, [True], [-1], [2.0], [1 << 62], [10**400], ["1"], [1] * 65, {}])
def test_no_shape_is_announced_that_no_tensor_has(shape):
    assert outside._announced([[{"dtype": "float32", "shape": shape}]]) == []


def test_many_outputs_are_announced_as_they_are():
    sets = [[{"dtype": "float32", "shape": [2, 0]}] * 100]
    assert outside._announced(sets) == sets


@pytest.mark.parametrize(
    ("named", "believed", "kind"),
    [
        ("ProblemError", True, ProblemError),
        ("DeviceUnavailable", True, DeviceUnavailable),
        ("ProblemError", False, EvaluatorError),
        ("annotations", True, EvaluatorError),
        ("StoreError", True, EvaluatorError),
        ("__name__", True, EvaluatorError),
        (7, True, EvaluatorError),
    ],
)
def test_a_worker_names_only_errors_that_it_may_have(named, believed, kind):
    heard = RecordHandler(print, result={"kind": "error", "error": named, "message": "m" * 10_000})
    with pytest.raises(CutegenError) as raised:
        raise_reported_error(heard, believed=believed)
    assert type(raised.value) is kind
    assert len(str(raised.value)) < 5000


def test_the_check_is_listed_once_however_often_it_was_said():
    said = CheckResult(name=OUTSIDE.name, tier=OUTSIDE.tier, state=CheckState.RAN, note="all is well")
    other = replace(said, name="other")
    true = replace(said, state=CheckState.NOT_RUN, note="too large")
    found = with_check(replace(PASSED, checks=(said, other, said)), true)
    assert [(item.name, item.note) for item in found.checks] == [
        (OUTSIDE.name, "too large"),
        ("other", "all is well"),
    ]


def test_inputs_are_given_once(tmp_path):
    calling = outside._Calling(print, drawn={"files": [], "given": {"sets": []}}, folder=tmp_path)
    assert calling({"kind": "imported"}) == {"sets": []}
    assert calling({"kind": "imported"}) is None


@pytest.mark.long
def test_a_fault_that_comes_once_is_a_flag(quick, outside_of, monkeypatch):
    real, seen = outside._once, []

    async def once_failing(order, workers, progress):
        seen.append(order)
        if len(seen) > 1:
            return await real(order, workers, progress)
        failing = Candidate(source="raise RuntimeError('a bad moment')", author="test")
        return await real(replace(order, candidate=failing), workers, progress)

    monkeypatch.setattr(outside, "_once", once_failing)
    evaluation = outside_of("relu")
    assert evaluation.passed, evaluation.summary
    flag = next(item for item in evaluation.findings if item.kind == "outside-once")
    assert flag.severity is Severity.FLAG
    assert "a bad moment" in flag.message
    assert outside_check(evaluation).state is CheckState.FOUND


@pytest.mark.long
def test_wrong_values_once_are_wrong(quick, outside_of, monkeypatch):
    real, seen = outside._once, []

    async def counted(order, workers, progress):
        seen.append(order)
        return await real(order, workers, progress)

    monkeypatch.setattr(outside, "_once", counted)
    assert outside_of("zeros").outcome == WRONG
    assert len(seen) == 1


LOOKS = """
import gc, os, sys
def look():
    held = [item for item in gc.get_objects() if type(item) is dict and 'get_inputs' in item]
    try:
        raise LookupError
    except LookupError as error:
        frame = error.__traceback__.tb_frame
    words = []
    while frame is not None:
        words += [str(value) for value in frame.f_locals.values() if isinstance(value, dict)]
        frame = frame.f_back
    if held or any('torch.re' 'lu(x' in text for text in words):
        raise RuntimeError('the reference is here')
look()
"""


def test_the_candidates_process_holds_no_reference(quick, outside_of):
    evaluation = outside_of(LOOKS + right(quick, "look(); return y"))
    assert evaluation.passed, evaluation.summary


ODD_INIT = """import torch
class Odd:
    scale = 2.0
class Model(torch.nn.Module):
    def __init__(self, first, *rest):
        super().__init__()
        self.given = (first, *rest)
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(16, 64)]
def get_init_inputs():
    return {init}
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("init", "state"),
    [
        ("[2, 0.5, float('inf'), 'mean', None, True, (3, [4, {'a': torch.ones(2)}]), torch.float32]", "ran"),
        ("[Odd()]", "not run"),
    ],
)
def test_constructor_arguments_travel_as_data_or_it_says_that_they_do_not(quick, outside_of, init, state):
    source = quick.source("relu") + (
        "\nclass Given(ModelNew):\n    def __init__(self, *given):\n        super().__init__()\n"
        "        self.given = given\nModelNew = Given\n"
    )
    evaluation = outside_of(source, ODD_INIT.format(init=init))
    assert evaluation.passed, evaluation.summary
    check = outside_check(evaluation)
    assert check.state.value == state, check.note
    assert state == "ran" or "init 0 is a Odd" in check.note


def test_what_is_too_large_says_its_size(outside_of, monkeypatch):
    monkeypatch.setattr(outside, "LARGEST_BYTES", 1000)
    evaluation = outside_of("relu")
    assert evaluation.passed
    check = outside_check(evaluation)
    assert check.state is CheckState.NOT_RUN
    assert "may pass through files here" in check.note
    assert not evaluation.findings


def flagged(evaluation):
    assert evaluation.passed
    assert outside_check(evaluation).state is CheckState.NOT_RUN
    flag = next(item for item in evaluation.findings if item.kind == "outside-not-run")
    assert flag.severity is Severity.FLAG
    return flag.message


def test_a_full_disk_is_told_as_a_flag(outside_of, monkeypatch):
    monkeypatch.setattr(outside.shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert "may pass through files here" in flagged(outside_of("relu"))


@pytest.mark.long
def test_a_judge_that_reports_an_error_is_told_as_a_flag(quick, outside_of, monkeypatch):
    async def failing(request, limits, heard, **_):
        heard.result = {"kind": "error", "error": "EvaluatorError", "message": "no memory is left"}
        return WorkerRun(end={})

    outside_of("relu")  # what is known of the problem is known
    monkeypatch.setattr(quick.evaluator._workers, "run", failing)
    assert "no memory is left" in flagged(outside_of("relu"))


@pytest.mark.long
def test_a_judge_that_is_lost_is_our_fault_and_no_verdict(quick, outside_of, monkeypatch):
    workers = quick.evaluator._workers
    real = workers.run

    async def killing(request, *arguments, **settings):
        if request["kind"] == "outside-call":
            me = sandbox.descendants(workers.server.process_id)
            sandbox.kill(*me)
        return await real(request, *arguments, **settings)

    monkeypatch.setattr(workers, "run", killing)
    with pytest.raises(EvaluatorError, match="judges outside ended"):
        outside_of("relu")


def test_strides_and_alignment_travel(tmp_path):
    for item in (torch.randn(4, 6).t(), torch.randn(2, 3, 4).transpose(0, 2), torch.randn(1, 5).expand(3, 5)):
        back = tensor_files.unpack(tensor_files.pack(item, tmp_path, "x"), tmp_path)
        assert torch.equal(back, item)
        assert back.stride() == item.clone().stride()
        assert back.data_ptr() % 64 == 0


@pytest.mark.long
def test_the_judge_holds_its_folder_and_memory_from_the_candidate(quick, outside_of):
    """Where Landlock holds, no folder beside the candidate's own can be read, nor another's memory."""
    source = right(
        quick,
        """import os
        me = os.environ['HOME']
        found = []
        for pid in filter(str.isdecimal, os.listdir('/proc')):
            try:
                open(f'/proc/{pid}/mem', 'rb').close()
                found += [pid] if int(pid) != os.getpid() else []
            except OSError: pass
        try: found += [name for name in os.listdir(os.path.dirname(me)) if name not in me]
        except OSError: pass
        if found: raise RuntimeError(f'reached {found}')
        return y""",
    )
    if "Landlock (ABI" not in quick("relu", "relu").confinement:
        pytest.skip("no Landlock here")
    evaluation = outside_of(source)
    assert evaluation.passed, evaluation.summary


def test_conjugated_and_negated_views_travel_as_they_are_meant(tmp_path):
    item = torch.randn(3, 2, dtype=torch.complex64).conj()
    for view in (item, item.imag):
        assert torch.equal(tensor_files.unpack(tensor_files.pack(view, tmp_path, "x"), tmp_path), view)


def test_a_record_nested_beyond_reading_is_malformed_and_nothing_else():
    here, there = socket.socketpair()
    with here, there:
        body = b"[" * 100_000
        there.sendall(len(body).to_bytes(4, "big") + body)
        with pytest.raises(MalformedRecord):
            Channel(here).receive()


class OnGpu:
    """Workers of a GPU, as far as the way of the tensors goes."""

    def __init__(self, folder, *, shares=True):
        self.shares = shares
        self._folder = folder

    async def forks(self):
        async def ready():
            pass

        return SimpleNamespace(ready=ready, folder=lambda _: self._folder)

    async def choice(self):
        return SimpleNamespace(kind=DeviceKind.GPU)


@pytest.mark.parametrize(
    "case",
    [
        (64 << 20, True, False, [True]),
        ((64 << 20) - 1, True, False, [False]),
        (64 << 20, False, False, [False]),
        (64 << 20, True, True, [True, False]),
    ],
    ids=["large", "small", "a driver that refused before", "a driver that refuses now"],
)
def test_on_a_gpu_large_tensors_go_through_its_memory_where_the_driver_shares_it(tmp_path, monkeypatch, case):
    size, shares, refused, ways = case
    seen = []

    async def once(order, workers, progress):
        seen.append(order.shared)
        if order.shared and refused:
            raise outside._Unshared
        return IsolatedFinding(evaluation=PASSED, note="3 calls")

    monkeypatch.setattr(outside, "_once", once)
    workers = OnGpu(tmp_path, shares=shares)
    order = outside.IsolatedRequest(
        problem=None, candidate=None, workload=SimpleNamespace(least_bytes=size), longest_sum=1, gates=[]
    )
    found = reconciled(PASSED, *asyncio.run(outside.judge_isolated(order, workers, lambda _: None)))
    assert seen == ways
    assert found.passed
    assert outside_check(found).note == "3 calls"
    assert workers.shares is (shares and not refused), "it is not asked again"
