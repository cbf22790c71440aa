"""Ranges of addresses that take memory only where they are written."""

import mmap

import numpy as np
import pytest

from cutegen_nb.evaluator.full_size.mapping import AddressRange, MappingFailed, range_at


def test_a_terabyte_reads_as_zeros_and_keeps_what_is_written():
    view = np.asarray(AddressRange(1 << 40))
    view[1 << 39] = 7
    assert (int(view[0]), int(view[1 << 39]), int(view[-1])) == (0, 7, 0)


def test_a_pattern_repeats_and_its_end_is_cut_off():
    made = AddressRange(3 * mmap.PAGESIZE - 100)
    made.repeat(np.arange(mmap.PAGESIZE, dtype=np.uint64).astype(np.uint8))
    view = np.asarray(made)
    assert (view == np.arange(len(view)) % mmap.PAGESIZE % 256).all()
    view[0] = 99
    assert int(view[mmap.PAGESIZE]) == 0  # each page is private once it is written


def test_a_range_is_known_while_something_holds_it():
    view = np.asarray(AddressRange(mmap.PAGESIZE))
    address = view.ctypes.data
    assert range_at(address) is not None
    assert range_at(address + 1) is None
    del view
    assert range_at(address) is None


def test_what_does_not_fit_is_one_sentence():
    with pytest.raises(MappingFailed, match="does not fit the address space"):
        AddressRange(1 << 60)
    with pytest.raises(ValueError, match="no multiple"):
        AddressRange(2 * mmap.PAGESIZE).repeat(np.zeros(100, np.uint8))
