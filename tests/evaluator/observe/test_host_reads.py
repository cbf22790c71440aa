"""Reads of the inputs by the host are seen on the simulator, where tensors lie in the CPU's memory."""

from __future__ import annotations

import pytest
import torch

from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch
from cutegen_nb.evaluator.observe.host_reads import HostReads, InputStorages
from cutegen_nb.evaluator.observe.provenance import Provenance

X = torch.rand(6, 8)


def read_by(forward):
    """Bytes of the inputs that each of a call's host reads took."""
    followed = InputStorages([X], Provenance(None))
    watch = ForwardWatch(__file__, followed=followed)
    with watch, HostReads(followed, watch.read_on_host):
        forward(X)
    return [(item.size_bytes, item.of_inputs) for item in watch.moved if item.down]


@pytest.mark.parametrize(
    ("forward", "seen"),
    [
        (lambda x: x.clone().cpu().numpy(), [(192, True)]),
        (lambda x: x.to("cpu"), [(192, True)]),
        (lambda x: x.to(device="cpu"), [(192, True)]),
        (lambda x: x.tolist(), [(192, True)]),
        (lambda x: x[0].tolist(), [(32, True)]),
        (lambda x: x[0, 0].item(), [(4, True)]),
        (lambda x: (x + 1).cpu(), [(192, True)]),
        (lambda x: x.clone().numpy(), [(192, True)]),
        (lambda _: torch.arange(9).tolist(), []),
        (lambda x: torch.zeros_like(x).numpy(), []),
        (lambda x: list(x.shape), []),
    ],
    ids=[
        "cpu", "to", "to a device", "list", "a row", "an element", "of what was made from it", "a copy",
        "other numbers", "zeros", "the shape",
    ],
)  # fmt: skip
def test_reads_of_inputs_are_counted_and_others_are_not(forward, seen):
    assert read_by(forward) == seen


@pytest.mark.parametrize("reading", [lambda x: x.numpy(), lambda x: x.t().numpy(), lambda x: x.__array__()])
def test_numpy_is_refused_an_input_with_pytorchs_own_sentence(reading):
    with pytest.raises(
        TypeError, match=r"can't convert cuda:0 device type tensor to numpy\. Use Tensor\.cpu\(\)"
    ):
        read_by(reading)
