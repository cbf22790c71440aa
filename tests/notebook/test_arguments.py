"""The words of the magics: what is wrong with them in a sentence, with the nearest that there is."""

from __future__ import annotations

import pytest

from cutegen_nb.notebook import arguments
from cutegen_nb.notebook.commands import COMMANDS
from cutegen_nb.notebook.faults import NotebookUsageError


@pytest.mark.parametrize(
    ("command", "rest", "words"),
    [
        ("", "--author ofline", "there is no 'ofline': did you mean offline?"),
        ("", "--device cud", "there is no 'cud': did you mean cuda?"),
        ("", "--rouds 3", "unknown argument '--rouds': did you mean --rounds?"),
        ("", "--rouds=3", "did you mean --rounds?"),
        ("", "--rounds many", "'many' is not a number of rounds: give a whole number from 1"),
        ("", "--polcy auto", "did you mean --policy?; see `%cutegen help`"),
        ("resume", "gelu --round 5", "did you mean --rounds?; see `%cutegen help resume`"),
        ("export", "--unchekd k.py", "did you mean --unchecked?"),
        ("stop", "--nam gelu", "did you mean --name?"),
        ("reject", "--names=gelu it spills", "did you mean --name?"),
        ("merge", "r1", "something is missing: `%cutegen merge [--name NAME] rN[:HUNK,…] rN[:HUNK,…]`"),
        ("branch", "", "something is missing: `%cutegen branch [--name NAME] rN`"),
        ("replay", "", "something is missing: `%cutegen replay"),
        ("sessions", "gelu relu", "'relu' is one word too many"),
        ("wait", "--timeout soon", "'soon' is not a number of seconds above 0"),
    ],
)
def test_a_slip_gets_the_nearest_or_the_form_that_there_is(command, rest, words):
    with pytest.raises(NotebookUsageError) as told:
        arguments.parse_command(command, rest) if command else arguments.parse_cell(rest)
    assert words in str(told.value)


@pytest.mark.parametrize("words", ["--- it spills", "-O3 does not help", "--fast-math is wrong", "it's slow"])
def test_a_persons_own_words_may_begin_with_dashes(words):
    assert arguments.parse_command("reject", words).words == words


def test_every_command_has_help_and_is_listed_before_the_options_of_a_cell():
    whole = arguments.help_text()
    assert set(arguments.PARSERS) == set(COMMANDS)
    for name, parser in arguments.PARSERS.items():
        assert f"%cutegen {name}" in whole
        assert parser.description in arguments.help_text(name)
        assert f"usage: %cutegen {name}" in arguments.help_text(name)
    assert whole.index("%cutegen doctor") < whole.index("usage: %%cutegen")


@pytest.mark.parametrize("name", arguments.WORDY)
def test_a_command_that_takes_words_says_so(name):
    assert "[WORDS ...]" in arguments.help_text(name)


def test_help_tells_how_many_rounds_there_are_where_none_are_given():
    assert "default: as many as it had" in " ".join(arguments.help_text("resume").split())
    told = "default: 6; in a population as many as its epochs need; for a stored session as many as it had"
    assert told in " ".join(arguments.help_text().split())
