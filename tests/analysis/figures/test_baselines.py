"""Baselines that could not be made, from the flags of an evaluation."""

from dataclasses import replace

from cutegen_nb.analysis.figures.baselines import missing_baselines
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.testing.examples import passed


def flag(message, kind="no-baseline"):
    return Finding(kind=kind, message=message, severity=Severity.FLAG)


def test_a_missing_baseline_has_its_name_and_its_reason_in_one_line():
    told = flag("Baseline torch.compile could not be made: the compiler\n  ended.")
    evaluation = replace(passed(1), findings=(flag("Other.", kind="race-unlikely"), told))
    assert missing_baselines(evaluation) == (("torch.compile", "the compiler ended."),)


def test_a_message_in_other_words_is_the_reason_and_no_flag_is_none():
    assert missing_baselines(replace(passed(1), findings=(flag("It failed."),))) == (
        ("a baseline", "It failed."),
    )
    assert missing_baselines(passed(1)) == ()
