"""Storages of tensors as global memory, for as long as they live."""

import torch

from cutegen_nb.simulator.host.torch_memory.storages import GlobalMemoryView, Storages


def test_a_view_shares_its_bases_range_and_a_freed_tensor_is_gone():
    storages, base = Storages(), torch.zeros(64)
    storages.register(base[10:20])
    address = base.data_ptr()
    assert storages.holds(address, 256)
    assert not storages.holds(address + 4, 256)
    del base
    assert not storages.holds(address, 256)


def test_a_tensor_is_named_by_type_and_shape_unless_it_has_a_name():
    storages, x, y = Storages(), torch.zeros(4, 8), torch.zeros(2, dtype=torch.int64)
    storages.register(x)
    storages.register(y)
    storages.label(y, "indices")
    assert {one.label for one in storages.memory().allocations} == {"float32[4, 8]", "indices"}


def test_what_was_made_on_the_host_is_no_global_memory_until_it_is_moved():
    storages, x = Storages(), torch.zeros(4)
    storages.made_on_host(x)
    assert storages.shown_as_global(x) is x
    storages.moved(x)
    assert isinstance(storages.shown_as_global(x), GlobalMemoryView)
    assert storages.shown_as_global(3) == 3
