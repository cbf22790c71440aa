"""Code of the program that torch calls back."""

PROGRAM = "torch_extensions"


def test_code_that_torch_calls_back_is_on_the_gpu(outcome):
    assert outcome == "ok", outcome
