"""README, documentation, CONTRIBUTING, Makefile and pyproject name only commands, options, paths and links that exist."""

from __future__ import annotations

import argparse
import importlib
import itertools
import re
import shlex
import sys
from pathlib import Path

import pytest

from cutegen_nb.app.commands import COMMANDS
from cutegen_nb.cli import main
from cutegen_nb.cli.main import make_parser, parse
from cutegen_nb.core.evaluation import NotJudgedReason, Tier, Verdict
from cutegen_nb.core.round import Action
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.core.stage import Stage
from cutegen_nb.exploits.library import ExploitKind, exploits
from cutegen_nb.notebook import arguments
from cutegen_nb.store.knowledge_file import shipped_records

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "cutegen_nb"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS]
WRITTEN = [page for page in PAGES if page.name != "commands.md"]
"""Pages that persons write; the page of commands is made from the code."""
TREES = ("cutegen_nb", "tests", "docs", "benchmarks", "notebooks", "prompts", "tools", "frontend")
"""Top folders of the repository that texts name paths in."""
BASES = (ROOT, PACKAGE, PACKAGE / "evaluator", PACKAGE / "simulator", ROOT / "tests")
"""Folders that a text's paths are relative to; it says which where it is not the root."""
USERS = ("KernelBench/", "dist/", "site/", "guide=off/", ".cutegen/", "no/such/")
"""Beginnings of paths that a user, a build or a run makes."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path, kind: str) -> list[str]:
    """Fenced blocks of one language, in order."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", text_of(page), re.MULTILINE | re.DOTALL)
    return [text for language, text in fences if language == kind]


def prose(page: Path) -> str:
    """Text without fenced blocks."""
    return re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def spans(page: Path) -> list[str]:
    """Pieces of inline code, each on one line."""
    return [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", prose(page))]


def shown_commands(page: Path) -> list[str]:
    """Whole command lines that a page shows in blocks, without their prompt and their comment."""
    lines = [
        line for kind in ("sh", "console") for block in blocks(page, kind) for line in block.splitlines()
    ]
    return [line.removeprefix("$ ").partition("  #")[0] for line in lines if "cutegen-nb " in line]


def refused(monkeypatch, words: list[str]) -> str:
    """Sentence with which a command line is refused; empty where it is understood."""
    said: list[str] = []
    monkeypatch.setattr(sys.stderr, "write", said.append)
    try:
        parse(words)
    except SystemExit as end:
        return "".join(said) if end.code else ""
    return ""


# Links and paths


def slug(heading: str) -> str:
    """Anchor of a heading, as the site and GitHub make it."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file_and_a_heading(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{name_of(page)} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", text_of(linked), re.MULTILINE)
            assert anchor in map(slug, headings), f"{name_of(page)} links to {target}"


def mentioned_paths(text: str) -> set[str]:
    """Paths below a top folder of the repository, up to their first placeholder."""
    found = re.findall(rf"(?<![\w./-])((?:{'|'.join(TREES)})/[\w./-]*)", text)
    return {path.rstrip(".") for path in found}


BUILT = ("cutegen_nb/prompts",)
"""Paths of the wheel that the repository does not have."""


def exists(path: str) -> bool:
    """Return whether a path exists; one that a placeholder cut short, by the folder before it."""
    target = ROOT / path
    return target.exists() or (
        not target.suffix and target.parent.is_dir() and any(target.parent.glob(f"{target.name}*"))
    )


@pytest.mark.parametrize(
    "page", [*WRITTEN, ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "zensical.toml"], ids=name_of
)
def test_every_path_of_the_repository_that_is_mentioned_exists(page):
    missing = sorted(
        path for path in mentioned_paths(text_of(page)) if path not in BUILT and not exists(path)
    )

    assert missing == [], f"{name_of(page)} names what is not there"


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_module_and_name_in_inline_code_is_where_it_is_said_to_be(page):
    """``loop/round.py: run_round`` is a module with that name in it; a folder ends in a slash."""
    checked = 0
    for span in spans(page):
        found = re.fullmatch(r"([\w./-]+/(?:[\w.-]+\.(?:py|js|toml))?)(?:: ?([\w.]+))?", span)
        if found is None or span.startswith((".", "/", "~", *USERS)):
            continue
        path, name = found.groups()
        place = next((base / path for base in BASES if (base / path).exists()), None)
        assert place is not None, f"{name_of(page)}: {span}"
        for part in (name or "").split(".") if name else ():
            assert re.search(rf"\b{part}\b", text_of(place)), f"{name_of(page)}: {span}"
        checked += 1
    assert checked or page.name not in {"CONTRIBUTING.md", "methods.md"}


def test_the_map_of_the_packages_lists_every_folder_and_no_other():
    tree = text_of(ROOT / "CONTRIBUTING.md").partition("\ncutegen_nb/\n")[2].partition("```")[0]
    named, parents = set(), [""]
    for line in tree.splitlines():
        found = re.match(r"^((?:│   |    )*)(?:├── |└── )([\w-]+)/ ", line)
        if found:
            depth = len(found[1]) // 4
            parents = [*parents[: depth + 1], f"{parents[depth]}{found[2]}/"]
            named.add(parents[-1])
    folders = {
        f"{folder.relative_to(PACKAGE).as_posix()}/"
        for folder in PACKAGE.rglob("*")
        if folder.is_dir() and any(folder.glob("*.py"))
    }
    top = {folder for folder in folders if folder.count("/") == 1}

    assert len(named) > 50
    assert top <= named
    assert {path for path in named if not (PACKAGE / path).is_dir()} == set()
    # A folder whose parts are named at all has all of them named, or they stand in its line.
    for folder in folders - named:
        parent = f"{folder.rstrip('/').rpartition('/')[0]}/"
        line = next(
            line for line in tree.splitlines() if f" {parent.rstrip('/').rpartition('/')[2]}/ " in line
        )
        shown = f"{folder.rstrip('/').rpartition('/')[2]}"
        assert parent in named, folder
        assert f"{shown}/" in line or not any(one.startswith(parent) and one != parent for one in named), (
            folder
        )


def test_every_python_name_of_the_reference_can_be_imported():
    names = re.findall(r"^::: ([\w.]+)$", text_of(ROOT / "docs" / "reference" / "python.md"), re.MULTILINE)
    assert len(names) > 10
    for name in names:
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last), name


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_target_of_make_and_variable_of_the_environment_exists(page):
    makefile = text_of(ROOT / "Makefile")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    shown = [line for block in blocks(page, "sh") + blocks(page, "console") for line in block.splitlines()]
    made = {word for text in [*spans(page), *shown] for word in re.findall(r"^(?:\$ )?make ([\w-]+)", text)}
    read = "\n".join([makefile, *(text_of(module) for module in PACKAGE.rglob("*.py"))])

    assert made <= targets
    for variable in re.findall(r"\bCUTEGEN_[A-Z_]+\b", text_of(page)):
        assert variable in read, variable


def test_every_target_of_make_is_explained_in_contributing():
    phony = re.search(r"^\.PHONY: (.*)$", text_of(ROOT / "Makefile"), re.MULTILINE)
    assert phony is not None
    explained = set(re.findall(r"`make ([\w-]+)`", " ".join(text_of(ROOT / "CONTRIBUTING.md").split())))

    assert set(phony[1].split()) - explained == {"format", "clean"}


# Commands, options and magics


def test_the_page_of_commands_is_what_its_maker_makes(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    monkeypatch.setenv("COLUMNS", "100")
    maker = importlib.import_module("make_commands")

    assert maker.page() == text_of(maker.PAGE), "run `python tools/make_commands.py`"


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_command_line_shown_is_understood(page, monkeypatch):
    for line in shown_commands(page):
        words = shlex.split(line)
        assert words[0] == "cutegen-nb", line
        assert refused(monkeypatch, words[1:]) == "", line


@pytest.mark.parametrize("item", [item for item in COMMANDS if item.example], ids=lambda item: item.name)
def test_the_example_of_a_command_is_understood(item, monkeypatch):
    for line in item.example.split("; "):
        if line.startswith("%"):
            word, name, *rest = line.split()
            assert (word, name) == ("%cutegen", item.name)
            arguments.PARSERS[name].parse_args(rest)
        else:
            assert (
                refused(monkeypatch, shlex.split(line.replace("(", "\\(").replace(")", "\\)"))[1:]) == ""
            ), line


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {word for action in parser._actions for word in action.option_strings}


@pytest.fixture(scope="module")
def known():
    """Options by command of the terminal, by magic, and of the programs beside the package."""
    _, parsers = make_parser()
    programs = [
        *(ROOT / "benchmarks").glob("*.py"),
        *(ROOT / "tools").glob("*.py"),
        *(ROOT / "tests" / "hardware").glob("**/*.py"),
    ]
    beside = {word for path in programs for word in re.findall(r"[\"'](--[a-z][\w-]*)[\"']", text_of(path))}
    return (
        {name: options_of(parser) for name, parser in parsers.items()},
        {name: options_of(parser) for name, parser in arguments.PARSERS.items()},
        options_of(arguments.CELL) | options_of(arguments.SIMULATE_CELL),
        beside | {"--index-url", "--enable-tvm-ffi", "--json", "--help"},
    )


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_command_magic_and_option_in_inline_code_exists(page, known):
    commands, magics, cell, beside = known
    everywhere = set().union(cell, beside, *commands.values(), *magics.values())
    for span in spans(page):
        for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span):
            assert option in everywhere, f"{name_of(page)}: {span}"
        for name in re.findall(r"cutegen-nb (?:dev )?([a-z]+)", span):
            assert name in commands or name == "dev", f"{name_of(page)}: {span}"
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", span):
                assert option in commands[name], f"{name_of(page)}: {span}"
        for name in re.findall(r"(?<!%)%cutegen ([a-z]+)", span):
            assert name in magics, f"{name_of(page)}: {span}"
        for name in re.findall(r"%%cutegen ([a-z]+)\b", span):
            assert name in arguments.CELL_WORDS, f"{name_of(page)}: {span}"


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_every_cell_shown_states_a_problem_with_options_that_exist(page):
    for block in blocks(page, ""):
        head, *cells = re.split(r"^%%cutegen", block, flags=re.MULTILINE)
        assert "%load_ext cutegen_nb" in head or not cells
        for cell in cells:
            options, _, source = cell.partition("\n")
            arguments.parse_cell(options)
            compile(source, name_of(page), "exec")
            assert "get_inputs" in source


# Figures that the code knows


def test_the_page_of_verdicts_names_every_one():
    page = text_of(ROOT / "docs" / "explanation" / "verdicts.md")
    listed = page.partition("A verdict is one of")[2].partition(" or CHEATED.")[0]
    names = set(re.findall(r"\b[A-Z]{3,}(?:_[A-Z]+)*\b", re.sub(r"\([^)]*\)", "", listed))) | {"CHEATED"}

    assert names == {verdict.value for verdict in Verdict}


def test_the_pages_count_the_cheats_and_the_records_that_there_are():
    kinds = [item.kind for item in exploits()]
    gpu = [item.kind for item in exploits() if not item.needs_gpu]
    cheats, honest = kinds.count(ExploitKind.CHEAT), kinds.count(ExploitKind.HONEST)
    verdicts = " ".join(text_of(ROOT / "docs" / "explanation" / "verdicts.md").split())
    strategies = text_of(ROOT / "docs" / "howto" / "strategies.md")

    assert f"runs {cheats} cheats, most named ones with variants, and {honest} honest kernels" in verdicts
    assert f"({gpu.count(ExploitKind.CHEAT)} and {gpu.count(ExploitKind.HONEST)})" in verdicts
    assert f"{len(shipped_records())} records come with the package" in strategies


# Tree


def test_the_glossary_has_every_word_of_a_verdict_a_comparison_a_stage_and_a_decision():
    glossary = text_of(ROOT / "docs" / "reference" / "glossary.md").replace("\n  ", " ")
    words = [
        *Verdict,
        *NotJudgedReason,
        *Relation,
        *Tier,
        *(stage for stage in Stage if stage is not Stage.DONE),
    ]
    decisions = [Action.APPROVE, Action.REJECT, Action.STEER, Action.EDIT, Action.BRANCH, Action.OVERRULE]
    for word in (*words, *decisions):
        assert re.search(rf"\b{word.value}\b", glossary, re.IGNORECASE), word


def test_the_tree_keeps_the_rules_that_contributing_states(monkeypatch):
    """Docstrings open well, class names are used once, folders hold 22 modules at most, tests have modules' names."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    found = importlib.import_module("house").measure()

    assert len(found.questions) < found.docstrings / 100, found.questions
    assert found.classes == {}
    assert {folder: number for folder, number in found.folders.items() if number > 22} == {}
    assert len(found.untested) < found.modules / 10, found.untested


# Running what is shown


RUN = [
    tuple(ROOT / "docs" / "howto" / f"{name}.md" for name in names)
    for names in (
        ("own-problem", "another-machine"), ("library",), ("own-program",), ("profile",), ("strategies",)
    )
]  # fmt: skip
"""Pages whose commands run here, in one folder; of those that stand together the second uses the first one's session.

`test_readme.py` runs the README's.
"""
LONG = (RUN[0], *RUN[2:4])
"""Pages run in ``make test-long``: `test_readme.py` runs a session, `tests/cli/test_bundles.py` sends one to another
machine. The session of ``library`` leaves the record that ``strategies`` exports."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A user's folder with every file that the pages show."""
    made = tmp_path_factory.mktemp("docs")
    for page in itertools.chain(*RUN):
        for block in blocks(page, "python"):
            name = re.match(r"# (\w+\.py)\n", block)
            assert name is not None, f"{name_of(page)} shows Python without a file's name"
            # The commands are what is tried here: small inputs will do, and take a tenth of the time.
            small = block.replace("4096, 393216", "64, 512")
            (made / name[1]).write_text(small, encoding="utf-8")
    return made


@pytest.mark.slow
@pytest.mark.usefixtures("one_template")
def test_without_its_guard_the_kernel_shown_is_out_of_bounds(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    guarded = Path("my_twice.py").read_text(encoding="utf-8")
    guard = "    if i < gX.shape[0]:\n        gY[i]"
    assert guard in guarded
    Path("unguarded.py").write_text(guarded.replace(guard, "    gY[i]"), encoding="utf-8")

    assert main(["evaluate", "twice.py", "unguarded.py", "--device", "simulator"]) == 1
    told = capsys.readouterr().out
    assert told.startswith("OUT_OF_BOUNDS")
    assert "gY[i] = gX[i] + gX[i]" in told


@pytest.mark.slow
@pytest.mark.usefixtures("one_template")
@pytest.mark.parametrize(
    "pages",
    [pytest.param(pages, marks=pytest.mark.long if pages in LONG else ()) for pages in RUN],
    ids=lambda pages: " ".join(page.stem for page in pages),
)
def test_the_commands_of_a_page_run_in_the_order_shown(pages, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CUTEGEN_KNOWLEDGE", str(folder / "knowledge"))
    lines = [line for page in pages for line in shown_commands(page) if "$ cutegen-nb " in text_of(page)]
    assert lines
    for line in lines:
        status = main(shlex.split(line)[1:])
        assert status == 0, f"{line}\n{capsys.readouterr()}"
