"""Bytes are followed from a kernel's store through PyTorch to an output, and from a source to a kernel's load."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch
from cutegen_nb.evaluator.observe.provenance import Provenance, address_of
from cutegen_nb.evaluator.observe.read_sources import _digest

X = torch.randn(6, 8)


class Machine:
    """The simulator's account of launches; here the test says what they wrote and read."""

    def __init__(self):
        self.written = {}
        self.reads = ()

    def forget_written(self, address):
        self.written.pop(address, None)

    def kernel(self, read, output, value):
        """A launch that reads one tensor and stores a value everywhere in another."""
        self.reads += (
            SimpleNamespace(
                kernel="k",
                label="x",
                address=address_of(read),
                size_bytes=4,
                digest=_digest(read),
                unchanged=False,
            ),
        )
        unseen(output)[:] = value
        left = unseen(output).view(np.uint8).copy()
        self.written[address_of(output)] = SimpleNamespace(
            kernel="k", label="y", size_bytes=left.nbytes, left=left
        )
        return output


def unseen(tensor):
    """The memory of a tensor, past every mode."""
    count = tensor.untyped_storage().nbytes() // 4
    return np.frombuffer((ctypes.c_float * count).from_address(address_of(tensor)), np.float32)


@pytest.fixture
def call():
    """Run a forward with the machine under observation; return what was found of the call and of its output."""

    def run(forward):
        machine = Machine()
        provenance = Provenance(machine)
        provenance.explained.given([X])
        with ForwardWatch("/candidate.py", provenance=provenance):
            output = forward(machine)
        return SimpleNamespace(
            from_kernel=provenance.from_kernel(output) or provenance.equals_something_written(output),
            changed=provenance.changed_on_host(output),
            computed=provenance.explained.computed(output),
            unexplained=len(provenance.explained.unexplained()),
        )

    return run


def launched(machine, read=X, value=3.0):
    return machine.kernel(read, torch.empty(6, 8), value)


@pytest.mark.parametrize(
    ("forward", "from_kernel"),
    [
        (launched, True),
        (lambda m: launched(m).t(), True),
        (lambda m: launched(m).clone(), True),
        (lambda m: torch.zeros(6, 8).copy_(launched(m)), True),
        (lambda m: launched(m) * 2, True),
        (lambda m: torch.from_numpy(unseen(launched(m)).copy()), True),
        (lambda m: (launched(m), torch.relu(X))[1], False),
        (lambda m: (launched(m), torch.from_numpy(np.ones(48, np.float32)))[1], False),
        (lambda m: (launched(m), X.clone())[1], False),
    ],
    ids=[
        "stored", "a view", "a clone", "a copy", "computed from it", "the same bytes", "PyTorch's", "NumPy's",
        "a copied input",
    ],
)  # fmt: skip
def test_an_output_is_a_kernels_where_its_bytes_lead_back_to_a_store(call, forward, from_kernel):
    assert call(forward).from_kernel is from_kernel


def test_memory_that_is_handed_out_again_is_no_longer_a_kernels():
    machine = Machine()
    provenance = Provenance(machine)
    with ForwardWatch("/candidate.py", provenance=provenance):
        output = launched(machine)
        assert provenance.from_kernel(output)
        provenance.allocated(output)
    assert not provenance.from_kernel(output)


def after_the_kernel(change):
    def forward(machine):
        output = launched(machine)
        change(output)
        return output

    return forward


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda _: None, False),
        (lambda y: y.add_(1.0), False),
        (lambda y: unseen(y).__setitem__(0, 9.0), True),
    ],
    ids=["as it was left", "by PyTorch", "unseen"],
)
def test_a_write_of_the_host_after_the_last_kernel_is_seen(call, change, changed):
    assert call(after_the_kernel(change)).changed is changed


@pytest.mark.parametrize(
    ("read", "unexplained"),
    [
        (lambda: X, 0),
        (X.clone, 0),
        (lambda: X.t().contiguous(), 0),
        (lambda: torch.relu(X), 0),
        (lambda: torch.full((6, 8), 2.0), 0),
        (lambda: torch.zeros(6, 8).copy_(X), 0),
        (lambda: torch.from_numpy(np.ones(48, np.float32)), 1),
        (lambda: torch.from_numpy(np.ones(48, np.float32)).clone(), 1),
        (lambda: torch.empty(6, 8).copy_(torch.from_numpy(np.ones((6, 8), np.float32))), 1),
    ],
    ids=[
        "the input", "its clone", "a layout", "computed", "constants", "a copy", "NumPy's", "a clone of it",
        "copied into new memory",
    ],
)  # fmt: skip
def test_what_a_kernel_reads_is_explained_by_its_source(call, read, unexplained):
    assert call(lambda machine: launched(machine, read())).unexplained == unexplained


def test_what_the_host_changed_unseen_after_a_seen_copy_is_no_longer_explained(call):
    def changed(machine):
        given = X.clone()
        unseen(given)[0] = 9.0
        return launched(machine, given)

    assert call(changed).unexplained == 1


def test_an_output_that_seen_operations_made_is_told_from_an_input(call):
    assert call(lambda _: torch.relu(X)).computed
    assert not call(lambda _: X).computed
    assert not call(lambda _: torch.from_numpy(np.ones(48, np.float32))).computed
