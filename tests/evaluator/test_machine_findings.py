"""What only the simulator sees ends an evaluation, though the values are right; what looks alike passes."""

from __future__ import annotations

import pytest

from cutegen_nb.core.evaluation import CheckState, Judged, Verdict
from cutegen_nb.core.finding import Severity

pytestmark = pytest.mark.slow
SHARED = """
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    index = block * THREADS + thread
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout(THREADS), 16)
    if index < count:
        tile[thread] = x[index]
    cute.arch.{barrier}()
    other = THREADS - 1 - thread
    value = cutlass.max(tile[other], cutlass.Float32(0.0))
    if block * THREADS + other < count:
        y[block * THREADS + other] = value
"""


def through_shared_memory(judge, barrier):
    source = judge.source("relu")
    start = source.index("    thread, _, _")
    end = source.index("@cute.jit")
    return source[:start] + SHARED.format(barrier=barrier).lstrip("\n") + "\n\n" + source[end:]


def test_a_missing_barrier_is_a_race_though_every_value_is_right(judge):
    source = through_shared_memory(judge, "sync_warp")
    evaluation = judge("relu", source)
    assert evaluation.outcome == Judged(verdict=Verdict.RACE), evaluation.summary
    finding = evaluation.findings[0]
    assert finding.kind == "race"
    assert source.splitlines()[finding.line - 1].strip().startswith("value = cutlass.max(tile")
    assert "no barrier between them" in evaluation.summary
    states = {item.name: item.state for item in evaluation.checks}
    assert states["shared memory ordered by barriers"] is CheckState.FOUND


@pytest.mark.long
def test_a_tail_that_is_never_stored_may_be_read_unwritten(judge):
    evaluation = judge("relu", through_shared_memory(judge, "sync_threads"))
    assert evaluation.passed, evaluation.summary
    assert not evaluation.findings
    states = {item.name: item.state for item in evaluation.checks}
    assert states["results independent of memory never written"] is CheckState.RAN


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("made", "verdict"), [("empty_like", Verdict.UNINITIALISED_READ), ("zeros_like", None)]
)
def test_an_output_that_is_added_to_has_to_be_zero_first(judge, made, verdict):
    source = judge.source("relu").replace("y[index] = value", "y[index] = y[index] + value")
    source = source.replace("torch.empty_like(x)", f"torch.{made}(x)")
    evaluation = judge("relu", source)
    if verdict is None:
        assert evaluation.passed, evaluation.summary
        return
    assert evaluation.outcome == Judged(verdict=verdict), evaluation.summary
    assert evaluation.findings[0].severity is Severity.DECIDES
    assert "allocated in line" in evaluation.summary


PADDED = """
        rows = x.shape[0] + 3
        wide, y = torch.empty(rows, x.shape[1]), torch.empty(rows, x.shape[1])
        wide[:x.shape[0]] = x
        x = wide
"""


@pytest.mark.long
def test_padding_that_is_computed_and_cut_off_is_only_shown(judge):
    source = judge.source("relu").replace("        y = torch.empty_like(x)\n", PADDED.lstrip("\n"))
    evaluation = judge("relu", source.replace("return y", "return y[: x.shape[0] - 3].contiguous()"))
    assert evaluation.passed, evaluation.summary
    finding, movement = evaluation.findings
    assert (finding.kind, finding.severity) == ("uninitialised-read", Severity.FLAG)
    assert (movement.kind, movement.severity) == ("torch-movement", Severity.FLAG)
    assert "The outputs are nevertheless the same" in finding.message


def test_a_barrier_that_some_threads_never_reach_is_a_flag_with_its_line(judge):
    evaluation = judge("relu", "diverging_barrier")
    assert evaluation.passed, evaluation.summary
    (finding,) = evaluation.findings
    assert (finding.kind, finding.severity) == ("divergent-barrier", Severity.FLAG)
    assert finding.line == judge.line("diverging_barrier", "sync_threads")


def test_shared_memory_between_two_barriers_has_no_finding(judge):
    evaluation = judge("relu", "through_shared")
    assert evaluation.passed, evaluation.summary
    assert evaluation.findings == ()


def test_a_read_past_an_input_is_found_although_its_value_does_not_matter(judge):
    """Guard bands around the inputs, which a GPU needs, would give such a read memory of its own."""
    evaluation = judge("relu", "reads_past_the_end")
    assert evaluation.outcome == Judged(verdict=Verdict.OUT_OF_BOUNDS), evaluation.summary
