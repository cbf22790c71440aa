"""One call at the problem's full size in virtual memory: a sample of its launches, or the reason for none."""

from __future__ import annotations

import asyncio

import pytest

from cutegen_nb.evaluator.full_size import sampling
from cutegen_nb.evaluator.full_size.sampling import FullSizeSampler

pytestmark = pytest.mark.slow
ROWS, WIDTH = 1 << 15, 1 << 14
SIZE_BYTES = ROWS * WIDTH * 4


@pytest.fixture
def sample(judge):
    """The sample of a candidate for one of the problems at a size that no machine here holds."""

    def take(problem, source, *, sampler=None):
        large = judge.problem(problem).source.replace("torch.randn(37, 61)", f"torch.randn({ROWS}, {WIDTH})")
        given = judge.problem(large.replace("[61]", f"[{WIDTH}]"))
        facts = judge.facts(given.source)
        asked = (sampler or FullSizeSampler(judge.evaluator._workers)).sample
        return asyncio.run(asked(given, facts, judge.candidate(source), lambda _: None))

    return take


def test_counts_are_those_of_the_whole_grid_with_a_parameter_of_full_size(sample, judge):
    found = sample("scale", "scale")
    assert found.missing == ""
    (launch,) = found.launches
    assert launch.profile.grid[0] * launch.profile.block[0] == ROWS * WIDTH
    assert launch.profile.counters.gmem_store_bytes == SIZE_BYTES
    assert launch.profile.counters.gmem_load_bytes >= 2 * SIZE_BYTES, (
        "input and parameter, element by element"
    )
    assert launch.ctas < 100
    assert {line.file for line in launch.profile.lines} == {"candidate.py"}


@pytest.mark.long
def test_a_parameter_of_a_quarter_gibibyte_is_sampled(judge):
    """Moving the module and setting its parameters would compute on more memory than PyTorch may."""
    source = judge.problem("scale").source.replace("torch.randn(37, 61)", f"torch.randn(8, {1 << 26})")
    problem = judge.problem(source.replace("[61]", f"[{1 << 26}]"))
    take = FullSizeSampler(judge.evaluator._workers).sample
    facts = judge.facts(problem.source)
    found = asyncio.run(take(problem, facts, judge.candidate("scale"), lambda _: None))
    assert found.missing == ""
    assert found.launches[0].profile.counters.gmem_store_bytes == 8 << 28


@pytest.mark.first(1)
@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("return x", "It launched no kernel at full size."),
        ("raise ValueError('not\\nthis')", "It raised ValueError while in forward: not\n    this"),
        ("__import__('os')._exit(3)", ("The process ended with status 3 and no result while calling the candidate at "
         "full size.")),
        ("y = torch.full_like(x, 0.0, dtype=torch.float64, device='cpu').numpy().copy()", ""),
    ],
    ids=["no launch", "exception", "exit", "memory"],
)  # fmt: skip
def test_where_there_is_no_sample_the_reason_is_told(sample, judge, line, missing):
    source = judge.source("relu").replace("        y = torch", f"        {line}\n        y = torch")
    found = sample("relu", source)
    assert found.launches == ()
    assert found.missing
    assert found.missing == missing or not missing


@pytest.mark.long
def test_a_call_that_does_not_end_is_ended(sample, judge, monkeypatch):
    monkeypatch.setattr(sampling, "deadline_s", lambda: 3.0)  # of an idle machine and of a busy one
    found = sample(
        "relu",
        judge.source("relu").replace("        y = torch", "        while True: pass\n        y = torch"),
    )
    assert found.missing.startswith("Not finished after 3 s; it was still calling the candidate at full size")


def test_a_candidate_is_called_once(sample, judge):
    sampler = FullSizeSampler(judge.evaluator._workers)
    assert sample("relu", "relu", sampler=sampler) is sample("relu", "relu", sampler=sampler)
