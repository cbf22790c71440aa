"""Each symbol of the runtime is answered in one way."""

from cutegen_nb.simulator.host.runtime_symbols import REFUSED_NAMES, SUCCEEDING_NAMES


def test_no_symbol_is_both_answered_and_refused():
    names = (*SUCCEEDING_NAMES, *REFUSED_NAMES)
    assert len(set(names)) == len(names)


def test_nothing_that_makes_memory_or_work_succeeds_without_doing_it():
    assert not any(
        word in name for name in SUCCEEDING_NAMES for word in ("Malloc", "Memcpy", "Memset", "Launch")
    )
