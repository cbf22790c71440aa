"""Exported kernel: a module that holds its problem, read back exactly, and refused when it is damaged."""

from __future__ import annotations

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.report.kernel_file import kernel_file, read_kernel_file
from cutegen_nb.testing import examples

SOURCE = "class ModelNew:\n    pass\n"
PROBLEM = examples.relu_problem()
TEXT = kernel_file(
    SOURCE,
    PROBLEM,
    revision="r3 of relu",
    judged="It passed tier C.",
    environment={"nvidia-cutlass-dsl": "4.8.1", "torch": "2.13.0"},
)


def test_a_kernel_is_read_back_as_it_was_written():
    found = read_kernel_file(TEXT, "k.py")

    assert (found.source.rstrip("\n"), found.edited) == (SOURCE.rstrip("\n"), False)
    assert (found.revision, found.environment["torch"]) == ("r3 of relu", "2.13.0")
    assert found.problem.source == PROBLEM.source
    assert found.problem.path == "", "the path on the exporting machine stays there"


@pytest.mark.parametrize(
    "source", [SOURCE, "x = 1", "# /// cutegen-nb\nx = 1\n", "\n\n", "# ///\n", "é = '×'\n"]
)
def test_any_source_survives_and_the_file_compiles(source):
    text = kernel_file(source, PROBLEM, revision="r0", judged="", environment={})
    compile(text, "k.py", "exec")

    found = read_kernel_file(text, "k.py")
    assert (found.source, found.edited) == (source, False)


def test_an_edit_is_noticed():
    assert read_kernel_file(TEXT.replace("pass", "x = 1"), "k.py").edited


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (SOURCE, "k.py has no `# /// cutegen-nb` block"),
        (TEXT.replace("# ///\n", ""), "k.py has no `# /// cutegen-nb` block"),
        (TEXT.replace('"format": 1', '"format": 2'), "cannot be read (ValueError: format 2"),
        (TEXT.replace('"revision"', '"revisions"'), "cannot be read (KeyError"),
        (TEXT.replace("# {", "# ["), "cannot be read (JSONDecodeError"),
    ],
)
def test_any_other_or_damaged_file_is_one_sentence(text, sentence):
    with pytest.raises(UsageError) as refused:
        read_kernel_file(text, "k.py")

    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
