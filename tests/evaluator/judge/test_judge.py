"""The report says of every check what became of it: none is called done that was not, nor left out that was."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import cutegen_nb
from cutegen_nb.core.evaluation import CheckState, Judged, Tier, Verdict
from cutegen_nb.evaluator.catalog import catalog as registry
from cutegen_nb.evaluator.catalog.catalog import MACHINE_CHECKS
from cutegen_nb.evaluator.judge import judge as judging

EXPLOITS = Path(cutegen_nb.__file__).parent / "exploits"
BEFORE = "the evaluation ended before it"


def results(evaluation):
    return {item.name: item for item in evaluation.checks}


def test_of_a_kernel_that_did_not_compile_nothing_is_called_checked_that_needs_a_launch(judge):
    found = results(judge("relu", "compile_error"))
    for check in (*MACHINE_CHECKS.values(), registry.POISON, registry.VALUES, registry.SEEDS):
        state = CheckState.RAN if check is registry.SEEDS else CheckState.NOT_RUN
        assert found[check.name].state is state, check.name
    assert found[registry.VALUES.name].note == BEFORE
    assert found[registry.ADMISSION.name].state is CheckState.RAN


def test_of_a_wrong_kernel_what_came_before_the_comparison_is_called_done(judge):
    found = results(judge("relu", "zeros"))
    assert found[registry.VALUES.name].state is CheckState.FOUND
    for check in (
        registry.SEEDS, registry.POISON, registry.INPUTS_KEPT, registry.CONTRACT, registry.ORACLE,
        registry.ADMISSION, registry.HARNESS, *MACHINE_CHECKS.values(),
    ):  # fmt: skip
        assert found[check.name].state is CheckState.RAN, check.name
    assert found[registry.SEEDS.name].note == "1 seed"
    assert found[registry.AGAIN.name].note == BEFORE
    assert found[registry.COMPUTE.name].note == BEFORE


def test_of_a_right_kernel_every_check_of_its_tier_ran_or_says_why_not(judge):
    found = results(judge("relu", "relu"))
    missing = {item.note for item in found.values() if item.state is CheckState.NOT_RUN}
    assert missing == {"it needs a GPU", "the problem has no parameters"}
    assert found[registry.SEEDS.name].note == "3 seeds"


FLIP = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.flip(x, [0])

def get_inputs():
    return [torch.randn(64, 96)]

def get_init_inputs():
    return []
"""


def test_where_rearranging_is_the_whole_problem_pytorch_may_not_do_it(judge):
    copying = (EXPLOITS / "honest" / "padded_input.py").read_text()
    copying = copying.replace("cute.arch.fmax(x[i], 0.0)", "x[i]").replace(
        "torch.nn.functional.pad(x, (0, -columns % THREADS))", "torch.flip(x, [0])"
    )
    found = judge(FLIP, copying)
    assert found.label == "NOT_OWN_WORK", found.summary
    assert found.findings[0].kind == "torch-compute"


ILLEGAL = "CUDA error: an illegal memory access was encountered\nFor debugging pass CUDA_LAUNCH_BLOCKING=1"


@pytest.mark.parametrize(
    ("message", "verdict"),
    [(ILLEGAL, Verdict.OUT_OF_BOUNDS), ("CUDA error: misaligned address", Verdict.MISALIGNED), ("no", None)],
)
def test_a_gpus_fault_that_the_judges_own_call_reports_is_the_candidates(
    message, verdict, tmp_path, monkeypatch
):
    def synchronised(*_):
        raise RuntimeError(message)

    monkeypatch.setattr(judging, "_run", synchronised)
    loaded = SimpleNamespace(rewrites=(), problem=SimpleNamespace(digest=""))
    task = SimpleNamespace(
        source="x = 1", folder=tmp_path, gates=(), loaded=loaded, tier=Tier.B, digest="d" * 64
    )
    ground = SimpleNamespace(simulation=None, name="a GPU")
    if verdict is None:
        with pytest.raises(RuntimeError, match=r"^no$"):
            judging.judge(task, ground, list, lambda _: None)
        return
    evaluation = judging.judge(task, ground, list, lambda _: None).evaluation
    assert evaluation.outcome == Judged(verdict=verdict)
    assert evaluation.summary.startswith(
        "The GPU reported a fault while running a kernel that forward launched: CUDA"
    )
    assert "\n" not in evaluation.summary
