"""Cells that threads stored and no proxy fence covers: told apart from copies, kept by row, cleared by a fence."""

from types import SimpleNamespace

import numpy as np
import pytest

from cutegen_nb.simulator.checkers.async_proxy import AsyncProxy
from cutegen_nb.simulator.checkers.shared_cells import Touch

STORE, COPY, PRODUCT, LOAD = (SimpleNamespace(opcode=name) for name in ("st", "cp", "wgmma", "ld"))


def touched(row, *cells):
    return Touch(where=(row, np.array(cells)), bits=np.uint32(1), several=False, listed=False)


@pytest.fixture
def proxy():
    made = AsyncProxy((1, 8))
    made.written(touched(0, 2, 3), STORE)
    return made


def test_only_readers_of_that_proxy_miss_a_fence_and_only_at_stored_cells(proxy):
    assert proxy.misses(touched(0, 1, 2), PRODUCT)
    assert not proxy.misses(touched(0, 1, 4), PRODUCT)
    assert not proxy.misses(touched(0, 2), LOAD)
    assert proxy.unfenced(np.array([0, 0]), np.array([1, 3])) == 1


def test_a_fence_covers_what_was_stored_before_it_and_not_later_stores(proxy):
    proxy.fenced()
    assert not proxy.misses(touched(0, 2), PRODUCT)
    proxy.written(touched(0, 2), STORE)
    assert proxy.misses(touched(0, 2), PRODUCT)


def test_a_copy_that_lands_replaces_what_threads_stored(proxy):
    proxy.written(touched(0, 2, 3), COPY)
    assert not proxy.misses(touched(0, 2, 3), PRODUCT)


def test_rows_of_several_ctas_begin_as_the_one_that_stood_for_all(proxy):
    proxy.widen(2)
    proxy.written(touched(0, 2), COPY)
    assert not proxy.misses(touched(0, 2), PRODUCT)
    assert proxy.misses(touched(1, 2), PRODUCT)
