"""The stages of a session in their order."""

from cutegen_nb.core.stage import Stage


def test_structure_comes_before_counters_and_numbers_come_last():
    assert list(Stage) == [Stage.CORRECT, Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE, Stage.DONE]
    assert Stage("profile") is Stage.PROFILE
