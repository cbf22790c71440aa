"""`%cutegen assignment` and `points` in a real kernel."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# pytest's importlib mode puts no test folder on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "teaching"))

from notebook_kernels import Kernel
from rows_assignment import A_ROW_A_THREAD, TOML, answer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def kernel(tmp_path_factory) -> Iterator[Kernel]:
    folder = tmp_path_factory.mktemp("assignment")
    shutil.copy(TOML, folder)
    started = Kernel(folder, attended=False)
    yield started
    started.close()


@pytest.mark.long
def test_an_assignment_is_opened_checked_and_its_points_are_a_number(kernel: Kernel):
    before = kernel.run(answer("rows/2", A_ROW_A_THREAD)).error
    assert "there is no exercise 'rows/2'" in before
    assert "An exercise of an assignment needs `%cutegen assignment FILE` first" in before
    opened = kernel.run("%cutegen assignment rows.toml\nfrom cutegen_nb import points")
    assert "Work on rows: 2 exercises, 10 points" in opened.plain
    assert kernel.complete("%%cutegen check ro") == ["rows/1", "rows/2"]
    assert (
        "rows/2 was not checked since this notebook's kernel started" in kernel.run('points("rows/2")').error
    )
    assert "2 of 5 points" in kernel.run(answer("rows/2", A_ROW_A_THREAD)).plain
    assert kernel.run('points("rows/2")').plain.strip() == "2"
    assert "The opened assignment has rows/1, rows/2" in kernel.run('points("rows/3")').error


def test_a_file_that_is_no_assignment_gets_one_sentence(kernel: Kernel):
    ran = kernel.run("%cutegen assignment missing.toml")
    assert (
        ran.error
        == "cutegen: missing.toml cannot be read (No such file or directory): give the assignment's TOML file"
    )
    assert "something is missing" in kernel.run("%cutegen assignment").error
