"""Values between processes: what is sent comes back as it was, and nothing else is sent or read."""

from __future__ import annotations

import os

import pytest
import torch

from cutegen_nb.core.errors import EvaluatorError, UsageError
from cutegen_nb.evaluator.worker import tensor_files


class Odd:
    """A value that does not travel."""


@pytest.mark.parametrize(
    "value",
    [
        3,
        True,
        None,
        0.1,
        float("inf"),
        "mean",
        torch.float16,
        (3, [4, {"a": 1.5, "b": (None,)}]),
        torch.Size([2, 3]),
    ],
    ids=str,
)
def test_a_constructors_arguments_come_back_with_value_and_type(tmp_path, value):
    back = tensor_files.unpack(tensor_files.pack_nested(value, tmp_path, "init"), tmp_path)
    assert back == value
    assert type(back) is (tuple if isinstance(value, torch.Size) else type(value))


def test_tensors_within_containers_come_back(tmp_path):
    value = {"a": [torch.arange(3), torch.zeros(0, 2)]}
    back = tensor_files.unpack(tensor_files.pack_nested(value, tmp_path, "init"), tmp_path)
    assert torch.equal(back["a"][0], torch.arange(3))
    assert back["a"][1].shape == (0, 2)


@pytest.mark.parametrize("dtype", sorted(tensor_files.DTYPES))
def test_every_type_comes_back_bit_for_bit(tmp_path, dtype):
    given = torch.randint(0, 2, (3, 4)).to(getattr(torch, dtype)).t()
    back = tensor_files.unpack(tensor_files.pack(given, tmp_path, "x"), tmp_path)
    assert (back.dtype, back.shape, back.stride()) == (given.dtype, given.shape, given.clone().stride())
    assert torch.equal(back.contiguous().view(torch.uint8), given.contiguous().view(torch.uint8))


def _deep(depth):
    return [_deep(depth - 1)] if depth else 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Odd(), "init is a Odd"),
        ([Odd()], "init 0 is a Odd"),
        ({1: 2}, "init is a dict"),
        (_deep(9), "is a list"),
        (torch.zeros(2, dtype=torch.uint16), "a tensor of uint16 cannot be sent"),
    ],
)
def test_what_does_not_travel_is_named(tmp_path, value, words):
    with pytest.raises(UsageError, match=words):
        tensor_files.pack_nested(value, tmp_path, "init")


@pytest.mark.parametrize(
    ("put", "kind", "shape", "error"),
    [
        (lambda path: path.write_bytes(bytes(12)), "float32", [4], EvaluatorError),
        (lambda path: path.write_bytes(bytes(16)), "float128", [4], EvaluatorError),
        (lambda path: path.write_bytes(bytes(16)), "float32", [-4], EvaluatorError),
        (lambda path: path.write_bytes(bytes(16)), "float32", [1 << 40, 1 << 40], EvaluatorError),
        (lambda path: path.mkdir(), "float32", [4], OSError),
        (os.mkfifo, "float32", [4], EvaluatorError),
        (lambda path: path.symlink_to("/dev/zero"), "float32", [4], OSError),
        (lambda _: None, "float32", [4], OSError),
    ],
    ids=["short", "type", "negative", "too large", "folder", "pipe", "link", "nothing"],
)
def test_a_file_that_is_not_what_was_announced_is_refused_and_holds_up_nobody(
    tmp_path, put, kind, shape, error
):
    path = tmp_path / "x"
    put(path)
    with pytest.raises(error):
        tensor_files.read_tensor(path, kind, shape)
