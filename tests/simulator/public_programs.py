"""Public CuTe DSL programs that the simulator runs: their list, their fetching, and a table of their outcomes.

``public_programs.toml`` is the list. ``python tests/simulator/public_programs.py fetch FOLDER`` checks out
the listed files of each repository at its commit, ``packages`` names what some of them import, ``table``
prints the table of ``docs/reference/programs.md``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("public_programs.toml")
URL = "https://github.com/{owner}/{name}.git"
_MARK = Path(".git", "FETCHED")
"""File in a checkout that holds its commit once it is whole."""
PASSES, FOUND, REFUSED, OWN_FAULT, FAILS = (
    "passes", "true finding", "refused", "own fault", "fails",
)  # fmt: skip
OUTCOMES = {
    PASSES: "its own check passes, every launch was executed whole, and there is no finding",
    FOUND: "the simulator finds a fault that the program has",
    REFUSED: "the simulator names in a sentence what it does not run",
    OWN_FAULT: "it fails by itself, as on a GPU: by its own check, or by a name that the DSL does not have",
    FAILS: "it fails on the simulator alone",
}
"""Outcome → its meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """Public repository at one commit."""

    commit: str
    """Full hash."""
    licence: str
    """Licence that the repository states; ``none stated`` if it has no such file."""
    folders: tuple[str, ...]
    """Folders to check out; empty for all."""
    imports: tuple[str, ...] = ()
    """Folders that its programs import from, below the folder of all checkouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Program of a repository with its arguments and its outcome on the simulator."""

    repository: str
    """``owner/name``."""
    path: str
    """Path in the repository."""
    arguments: str = ""
    """Arguments of a script."""
    test: str | None = None
    """Tests of the file that pytest runs as the program: ``test_softmax[1-256]``; empty for all of the file,
    None for a script."""
    architecture: str
    """Architecture to compile for."""
    outcome: str
    """Key of `OUTCOMES`."""
    words: str = ""
    """Words of its output, of its report or of its last sentence that show the outcome."""
    seconds: int
    """Seconds from the program's start to its end, PyTorch and the DSL imported before; measured, no limit."""

    @property
    def name(self) -> str:
        """Name of the program with its arguments, as tests are named."""
        rest = self.arguments if self.test is None else f"by pytest {self.test}"
        return f"{self.repository}/{self.path} {rest}".strip() + f" on {self.architecture}"


def repositories() -> dict[str, Repository]:
    """Return the listed repositories by ``owner/name``."""
    found = tomllib.loads(LIST.read_text())["repositories"]
    return {
        name: Repository(
            **{key: tuple(value) if isinstance(value, list) else value for key, value in of.items()}
        )
        for name, of in found.items()
    }


def programs() -> tuple[Program, ...]:
    """Return the listed programs in their order."""
    return tuple(Program(**item) for item in tomllib.loads(LIST.read_text())["programs"])


def packages() -> tuple[str, ...]:
    """Return the requirements of packages that some programs import."""
    return tuple(tomllib.loads(LIST.read_text())["packages"])


def fetch(folder: Path, url: str = URL) -> None:
    """Check out each repository at its commit in ``folder/owner/name``; those that are there already stay."""
    for name, repository in repositories().items():
        place = folder / name
        if not _is_there(place, repository):
            sys.stdout.write(f"Fetching {name} at {repository.commit[:12]} ...\n")
            sys.stdout.flush()
            owner, _, short = name.partition("/")
            _check_out(place, url.format(owner=owner, name=short), repository)
            (place / _MARK).write_text(repository.commit)


def _is_there(place: Path, repository: Repository) -> bool:
    mark = place / _MARK
    return mark.exists() and mark.read_text() == repository.commit


def _check_out(place: Path, url: str, repository: Repository) -> None:
    def git(*words: str) -> None:
        subprocess.run(("git", "-C", str(place), *words), check=True)

    place.mkdir(parents=True, exist_ok=True)
    git("init", "-q")
    git("config", "remote.origin.url", url)
    git("config", "remote.origin.promisor", "true")
    if repository.folders:
        git("sparse-checkout", "set", *repository.folders)
    git("fetch", "-q", "--depth", "1", "--filter=blob:none", "origin", repository.commit)
    git("checkout", "-q", "FETCH_HEAD")


def family(program: Program) -> str:
    """Return the group of architectures that the issue's aims are about."""
    return "sm_100 to sm_120" if program.architecture.startswith("sm_1") else "sm_80 to sm_90"


def passing(chosen: Iterable[Program]) -> float:
    """Return the share of programs that pass or end with a true finding, of those with no fault of their own."""
    counts = Counter(program.outcome for program in chosen)
    return (counts[PASSES] + counts[FOUND]) / (counts.total() - counts[OWN_FAULT])


def table() -> str:
    """Return the outcomes by repository and by family of architectures, and the list, as Markdown."""
    return "\n".join([*_by_repository(), "", *_by_family(), "", *_each()]) + "\n"


def _row(*cells: object) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _counts(chosen: Iterable[Program]) -> list[str]:
    counts = Counter(program.outcome for program in chosen)
    return [str(counts.total()), *(str(counts[outcome] or "–") for outcome in OUTCOMES)]


def _by_repository() -> Iterator[str]:
    yield _row("repository", "commit", "licence", "programs", *OUTCOMES)
    yield _row(*["---"] * 3, *["--:"] * (1 + len(OUTCOMES)))
    for name, repository in repositories().items():
        counts = _counts(program for program in programs() if program.repository == name)
        yield _row(
            f"[{name}](https://github.com/{name})", f"`{repository.commit[:12]}`", repository.licence, *counts
        )
    yield _row("all", "", "", *_counts(programs()))


def _by_family() -> Iterator[str]:
    yield _row("compiled for", "programs", *OUTCOMES, "pass")
    yield _row("---", *["--:"] * (2 + len(OUTCOMES)))
    for name in dict.fromkeys(family(program) for program in programs()):
        chosen = [program for program in programs() if family(program) == name]
        yield _row(name, *_counts(chosen), f"{passing(chosen):.0%}")


def _each() -> Iterator[str]:
    yield _row("program", "arguments", "compiled for", "outcome", "seconds")
    yield _row("---", "---", "---", "---", "--:")
    for item in programs():
        place = f"{item.repository.partition('/')[2]}/{item.path.removeprefix('examples/python/CuTeDSL/')}"
        words = item.arguments if item.test is None else f"pytest {item.test}"
        shown = f"{item.outcome}: {item.words}" if item.outcome != PASSES else item.outcome
        yield _row(
            f"<code>{place}</code>",
            f"<code>{words}</code>" if words.strip() else "",
            item.architecture,
            shown.replace("|", "\\|"),
            item.seconds,
        )


def main() -> None:
    """Run one of the three commands."""
    match sys.argv[1:]:
        case ["fetch", folder]:
            fetch(Path(folder), os.environ.get("PUBLIC_URL", URL))
        case ["packages"]:
            sys.stdout.write(" ".join(packages()) + "\n")
        case ["table"]:
            sys.stdout.write(table())
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
