"""Fresh tensors hold a marker that no arithmetic makes."""

import pytest
import torch

from cutegen_nb.simulator.host.torch_memory.fresh_memory import fill


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_the_whole_storage_is_filled_and_told(dtype):
    told = []
    base = torch.zeros(8, dtype=dtype)
    fill(base[2:4], lambda tensor, bits: told.append((tensor.shape, bits)))
    assert bool(base.isnan().all())
    ((shape, bits),) = told
    assert shape == (2,)
    integer = {8: torch.int64, 4: torch.int32, 2: torch.int16}[dtype.itemsize]
    assert set(base.view(integer).tolist()) == {bits}


@pytest.mark.parametrize("value", [torch.zeros(4, dtype=torch.int32), torch.empty(0), 3, None])
def test_types_without_such_a_value_stay_as_they_are(value):
    told = []
    fill(value, lambda *given: told.append(given))
    assert told == []
