"""Memory from the bindings: allocated, set, copied, freed, and misuse of it."""

PROGRAM = "driver_memory"


def test_memory_of_the_bindings_behaves_as_on_a_gpu(outcome):
    assert outcome == "ok", outcome
