"""Screening of a candidate's text: faults that decide, and flags."""

from __future__ import annotations

import textwrap

import pytest

from cutegen_nb.analysis.source.screen import screen
from cutegen_nb.core.finding import Severity

HONEST = """
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def double_kernel(x: cute.Tensor, y: cute.Tensor):
    tidx, _, _ = cute.arch.thread_idx()
    y[tidx] = x[tidx] + x[tidx]


@cute.jit
def double(x: cute.Tensor, y: cute.Tensor):
    double_kernel(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double(from_dlpack(x), from_dlpack(y))
        return y
"""


def _kinds(source, severity):
    return {item.kind for item in screen(textwrap.dedent(source)) if item.severity is severity}


def test_an_honest_candidate_has_no_finding():
    assert screen(HONEST) == ()


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("def broken(:\n", "syntax-error"),
        ("x = '\0'\n", "syntax-error"),
        ("(" * 5000 + ")" * 5000, "syntax-error"),
        (HONEST.replace("ModelNew", "Model"), "no-model"),
        (HONEST.replace("@cute.kernel", ""), "no-kernel"),
        ("", "no-kernel"),
    ],
)
def test_three_facts_decide(source, kind):
    assert kind in _kinds(source, Severity.DECIDES)


def test_a_syntax_error_names_its_line():
    (finding,) = screen("x = 1\ny = = 2\n")
    assert finding.line == 2


def test_a_kernel_is_found_under_any_alias():
    source = HONEST.replace("import cutlass.cute as cute", "from cutlass import cute")
    assert not _kinds(source, Severity.DECIDES)
    renamed = HONEST.replace(
        "import cutlass.cute as cute", "import cutlass.cute as c\nimport cutlass.cute as cute"
    )
    assert not _kinds(renamed.replace("@cute.kernel", "@c.kernel"), Severity.DECIDES)
    bare = HONEST.replace("import torch\n", "import torch\nfrom cutlass.cute import kernel\n")
    assert not _kinds(bare.replace("@cute.kernel", "@kernel"), Severity.DECIDES)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("y = torch.relu(x)", "torch-compute"),
        ("import torch as t; y = t.nn.functional.gelu(x)", "torch-compute"),
        ("import torch.nn.functional as F; y = F.softmax(x, -1)", "torch-compute"),
        ("y = x @ x", "torch-compute"),
        ("import ctypes", "inside-python"),
        ("import gc", "inside-python"),
        ("import sys; sys.modules['torch']", "inside-python"),
        ("import sys; sys._getframe(1)", "inside-python"),
        ("exec('1')", "runs-text"),
        ("open('/tmp/x')", "outside-effect"),
        ("import socket", "outside-effect"),
        ("import os; os.fork()", "outside-effect"),
        ("import os; os._exit(0)", "outside-effect"),
        ("import threading", "threads"),
        ("import torch; torch.allclose = None", "patched"),
        ("import torch as t; t.cuda.Event.elapsed_time = None", "patched"),
        ("import time; time.perf_counter = None", "patched"),
        ("import torch; torch.backends.cuda.matmul.allow_tf32 = True", "global-setting"),
        ("import torch; torch.set_float32_matmul_precision('high')", "global-setting"),
        ("from torch.nn.modules.module import register_module_forward_hook", "patched"),
        ("from torch.utils._python_dispatch import _disable_current_modes", "modes-off"),
        ("import torch; torch.utils._python_dispatch._disable_current_modes()", "modes-off"),
        ("import torch; torch.Tensor._make_subclass(x, x)", "tensor-subclass"),
        ("import linecache", "inside-python"),
        ("key = (x.data_ptr(), x._version)", "kept-result"),
        ("import reference", "reference-import"),
        ("import cutegen_nb", "harness-import"),
        ("from torch.utils.cpp_extension import load_inline; load_inline('')", "inline-code"),
    ],
)
def test_everything_else_is_a_flag_with_its_line(line, kind):
    source = HONEST + "\n\ndef other(x):\n" + "".join(f"    {part.strip()}\n" for part in line.split(";"))
    assert not _kinds(source, Severity.DECIDES)
    flags = [item for item in screen(source) if item.kind == kind]
    assert flags
    assert flags[0].line > HONEST.count("\n")


def test_a_kernel_that_is_never_launched_is_flagged():
    assert "no-launch" in _kinds(HONEST.replace(".launch(", ".lunch("), Severity.FLAG)


def test_try_around_a_kernel_is_flagged():
    source = HONEST + "\n\ndef other():\n    try:\n        pass\n    except ValueError:\n        pass\n"
    assert "try-except" in _kinds(source, Severity.FLAG)
