"""A write past a buffer is found by the bands around it, and the buffer itself is what it was."""

from __future__ import annotations

import ctypes

import pytest
import torch

from cutegen_nb.evaluator.observe.dispatch_watch import ForwardWatch
from cutegen_nb.evaluator.observe.guard_bands import BAND_BYTES, Guards, between_bands, is_guarded


def poke(address, value=0x11):
    (ctypes.c_ubyte * 1).from_address(address)[0] = value


def end_of(tensor):
    return tensor.data_ptr() + tensor.numel() * tensor.element_size()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int8, torch.float64])
@pytest.mark.parametrize("size", [(5,), (3, 7), (4, 1, 2)])
def test_a_copy_between_bands_is_the_same_tensor(dtype, size):
    tensor = torch.arange(1, 1 + torch.Size(size).numel()).reshape(size).to(dtype)
    made = between_bands(tensor)
    assert torch.equal(made, tensor)
    assert made.stride() == tensor.stride()
    assert made.is_contiguous()
    assert (made.data_ptr() - made.untyped_storage().data_ptr()) % 256 == 0
    assert is_guarded(made)
    assert not is_guarded(tensor)


def test_strides_stay_and_what_overlaps_is_copied_without_bands():
    turned = torch.arange(12.0).reshape(3, 4).t()
    assert between_bands(turned).stride() == turned.stride()
    spread = torch.ones(1).expand(5)
    assert torch.equal(between_bands(spread), spread)
    assert not is_guarded(between_bands(spread))


@pytest.mark.parametrize(("offset", "before", "distance"), [(0, False, 0), (9, False, 9), (-1, True, 0)])
def test_a_byte_beyond_an_input_is_found_with_its_side_and_distance(offset, before, distance):
    guards, given = Guards(device="cpu"), between_bands(torch.zeros(5, 3))
    guards.begin()
    guards.given(given, "input 0")
    assert guards.breaches() == ()
    poke((given.data_ptr() if before else end_of(given)) + offset)
    (found,) = guards.breaches()
    assert (found.label, found.before, found.count, found.distance) == ("input 0", before, 1, distance)
    assert "input 0" in found.sentence


MAKERS = {
    "empty": lambda x: torch.empty(7, device="cpu"),
    "empty_like": torch.empty_like,
    "new_empty": lambda x: x.new_empty(3, 2),
    "empty_strided": lambda x: torch.empty_strided((2, 3), (1, 2), device="cpu"),
    "zeros": lambda x: torch.zeros(7, device="cpu"),
    "ones_like": torch.ones_like,
    "full": lambda x: torch.full((3,), 2.5, device="cpu"),
    "clone": lambda x: x.clone(),
    "to": lambda x: x.to(torch.float64),
    "no device": lambda x: torch.empty(9),
}


@pytest.mark.parametrize("name", MAKERS)
def test_what_a_candidate_allocates_is_guarded_and_holds_what_it_should(name):
    x = torch.arange(6.0).reshape(2, 3)
    plain = MAKERS[name](x)
    guards = Guards(device="cpu")
    guards.begin()
    with ForwardWatch(__file__, guards=guards):
        made = MAKERS[name](x)
    assert (made.shape, made.stride(), made.dtype) == (plain.shape, plain.stride(), plain.dtype)
    assert is_guarded(made)
    if "empty" not in name and name != "no device":
        assert torch.equal(made, plain)
    assert guards.breaches() == ()
    poke(end_of(made))
    (found,) = guards.breaches()
    assert "allocated in line" in found.label


def test_what_is_kept_from_an_earlier_call_stays_guarded_and_what_is_gone_is_forgotten():
    guards = Guards(device="cpu")
    guards.begin()
    with ForwardWatch(__file__, guards=guards):
        kept, gone = torch.empty(4, device="cpu"), torch.empty(4, device="cpu")
    del gone
    guards.begin()
    assert guards.breaches() == ()
    poke(kept.data_ptr() - 1)
    assert [item.before for item in guards.breaches()] == [True]


def test_an_operation_that_writes_into_a_given_tensor_is_left_alone():
    guards, out = Guards(device="cpu"), torch.empty(4)
    guards.begin()
    with ForwardWatch(__file__, guards=guards):
        assert torch.zeros(4, out=out) is out
    assert not is_guarded(out)


def test_the_bands_are_wider_than_a_row_of_a_tile():
    assert BAND_BYTES >= 1 << 16


def test_an_offset_of_a_candidates_own_buffer_is_counted_from_its_first_byte():
    guards = Guards(device="cpu")
    guards.begin()
    with ForwardWatch(__file__, guards=guards):
        made = torch.zeros(12, device="cpu")
        front, later = made.as_strided((3,), (1,), 0), made.as_strided((3,), (1,), 4)
        usual = made[2:].as_strided((3,), (1,))
    assert front.data_ptr() == made.data_ptr()
    assert later.data_ptr() == made.data_ptr() + 16
    assert usual.data_ptr() == made.data_ptr() + 8
    with ForwardWatch(__file__, guards=guards):
        plain = torch.arange(12.0).as_strided((3,), (1,), 4)
    assert plain.tolist() == [4.0, 5.0, 6.0]
