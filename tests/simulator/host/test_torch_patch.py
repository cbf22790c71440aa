"""Things that code for a GPU takes for granted of torch and of the bindings."""

PROGRAM = "gpu_code"


def test_code_written_for_a_gpu_finds_what_it_expects(outcome):
    assert outcome == "ok", outcome
