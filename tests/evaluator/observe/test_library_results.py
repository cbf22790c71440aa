"""Outputs that are the library's alone, where a policy leaves a part of a problem to PyTorch."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.core.library import LibraryFamily
from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch
from cutegen_nb.evaluator.observe.library_results import LibraryResults

X, W = torch.randn(6, 8), torch.randn(8, 5)


def kernel(tensor):
    """Stands for a kernel: it changes memory and no operator of PyTorch sees it."""
    with torch._C._DisableTorchDispatch():
        tensor.add_(1.0)
    return tensor


def after(forward):
    results = LibraryResults((LibraryFamily.MATMUL,), [X, W])
    with ForwardWatch("/candidate.py", library=results):
        output = forward()
    return results, output


@pytest.mark.parametrize(
    ("forward", "alone", "copied"),
    [
        (lambda: X @ W, True, True),
        (lambda: torch.t(X @ W), True, True),
        (lambda: torch.clone(X @ W), True, True),
        (lambda: torch.empty(6, 5).copy_(X @ W), True, True),
        (lambda: (X @ W).to(torch.float16), True, True),
        (lambda: (X @ W) @ W.t(), True, True),
        (lambda: X, True, True),
        (X.clone, True, True),
        (lambda: torch.zeros(3), True, True),
        (lambda: kernel(X @ W), False, False),
        (lambda: kernel(X.clone()) @ W, False, False),
        (lambda: kernel((X @ W).clone()), False, False),
        (lambda: kernel(torch.empty(6, 5).fill_(0.0)), False, False),
        (lambda: torch.relu(X @ W), False, False),
        (lambda: kernel(torch.zeros(6, 8)).fill_(0.0).add_(X), False, True),
    ],
    ids=[
        "a product", "a view of it", "its clone", "its copy", "its cast", "a product of it", "an input",
        "an input's clone", "constants", "changed by a kernel", "of what a kernel changed", "a changed copy",
        "filled by a kernel", "computed further", "a copy that work made",
    ],
)  # fmt: skip
def test_an_output_is_the_librarys_alone_until_a_kernel_touched_it(forward, alone, copied):
    results, output = after(forward)
    assert results.alone(output) is alone
    assert results.copied(output) is copied


def test_the_families_that_ran_are_told():
    assert after(lambda: X @ W)[0].used == (LibraryFamily.MATMUL,)
    assert after(X.clone)[0].used == ()
