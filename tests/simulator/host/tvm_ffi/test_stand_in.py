"""The parts of the package apache-tvm-ffi that the DSL uses."""

PROGRAM = "stand_in"


def test_the_stand_in_does_as_the_package(outcome):
    assert outcome == "ok", outcome
