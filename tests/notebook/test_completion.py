"""Completion of the magics' words, options and values."""

import pytest

from cutegen_nb.notebook.completion import suggestions


def offered(line):
    return suggestions(line, names=lambda: ["relu", "gelu"], revisions=lambda: ["r0", "r1"])


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("%cutegen sta", "status"),
        ("%cutegen report r", "relu"),
        ("%cutegen diff r", "r1"),
        ("%cutegen report relu --o", "--output"),
        ("%%cutegen --author off", "offline"),
        ("%cutegen status --name g", "gelu"),
    ],
)
def test_the_word_that_is_begun_is_offered(line, word):
    assert word in offered(line)


@pytest.mark.parametrize(
    "line", ["print(", "%cutegenx st", "%cutegen report --output ", "%other st", "%cutegen"]
)
def test_files_and_other_lines_are_left_to_others(line):
    assert offered(line) is None


def test_only_words_that_fit_are_offered():
    assert all(word.startswith("--de") for word in offered("%%cutegen --de"))
