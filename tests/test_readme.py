"""The README's example gives the table and the change that the README shows."""

from __future__ import annotations

import contextlib
import difflib
import io
import re
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.store.sqlite import SqliteStore

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]


def shown(kind: str, first: str) -> str:
    """The fenced block of one kind that begins with these words."""
    (block,) = re.findall(rf"^```{kind}\n({re.escape(first)}.*?)^```", README, re.MULTILINE | re.DOTALL)
    return block


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Output of the command that the README shows, and the session that it left."""
    folder = tmp_path_factory.mktemp("readme")
    (folder / "gelu.py").write_text(shown("python", "# gelu.py"), encoding="utf-8")
    (command,) = re.findall(r"^\$ cutegen-nb (run .*)$", README, re.MULTILINE)
    out = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out):
        assert main([*command.split(), "--device", "simulator"]) == 0
        with SqliteStore(Path(".cutegen"), writable=False) as store:
            return out.getvalue(), store.load("gelu")


def cells(table: str) -> list[list[str]]:
    return [re.split(r" {2,}", line.strip()) for line in table.strip().splitlines()]


def test_the_table_shown_is_the_one_that_comes(run):
    """Inputs are random, so that the instructions behind a branch differ a little from run to run."""
    given = cells(shown("", "round  strategy"))
    begin = run[0].index("round  strategy")
    came = cells(run[0][begin:].partition("\n\n")[0])
    place = given[0].index("warp instr.")

    for old, new in zip(given, came, strict=True):
        assert old[:place] + old[place + 1 :] == new[:place] + new[place + 1 :]
    for old, new in zip(given[2:], came[2:], strict=True):
        counts = [int(row[place].replace(",", "")) for row in (old, new)]
        assert counts[0] == pytest.approx(counts[1], rel=0.01)


def test_the_change_shown_is_the_one_between_the_first_two_revisions(run):
    first, second = (item.candidate.source.splitlines() for item in run[1].rounds[:2])
    change = list(difflib.unified_diff(first, second, lineterm="", n=3))[2:]
    lines = shown("diff", "     def forward").splitlines()

    places = [change.index(line) for line in lines]
    assert places == sorted(places)
    assert [line for line in lines if line[0] in "+-"] == [line for line in change if line[0] in "+-"][-2:]
