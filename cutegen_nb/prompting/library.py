"""Prompt templates and the strategy library, from the shipped folder or a person's own.

Each purpose has one template file. Templates are rendered strictly: an undefined name is an error, and a
template can neither run Python nor read other files. The shipped files are in ``prompts/`` of the source tree
and in ``cutegen_nb/prompts`` of the wheel. A file in a person's own folder replaces the shipped file of the
same name.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Bound, Condition, Direction, ExpectedEffect, Optimisation, Strategy

_PACKAGE = Path(__file__).resolve().parent.parent


def prompts_folder() -> Path:
    """Return the folder of the shipped templates: the wheel's, else the source tree's.

    Raises ConfigurationError when neither exists.
    """
    for folder in (_PACKAGE / "prompts", _PACKAGE.parent / "prompts"):
        if (folder / "contract.md.jinja").is_file():
            return folder
    message = f"no prompt templates beside {_PACKAGE}: install the package again"
    raise ConfigurationError(message)


def fenced(text: str, language: str = "") -> str:
    """Fence `text` as a code block; the fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def quoted(text: str) -> str:
    """Format `text` as a Markdown quotation, to mark a person's words."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines()) + "\n"


class PromptLibrary:
    """Templates and strategies: the shipped files, or file by file a person's own."""

    def __init__(self, folder: Path | None = None, own: Path | None = None) -> None:
        """Read from `folder` (the shipped one by default), and first from `own`.

        Raises ConfigurationError when `own` is no folder or holds a file that replaces no template.
        """
        self.folder = folder or prompts_folder()
        self.own = own
        self.own_files = _own_files(own, self.folder) if own else ()
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.FileSystemLoader([*([own] if own else []), self.folder]),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # the text goes to a model, not to a browser
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters["fenced"] = fenced
        self._environment.filters["quoted"] = quoted

    @property
    def own_digest(self) -> str:
        """SHA-256 over names and contents of the person's own files; empty without any."""
        if self.own is None or not self.own_files:
            return ""
        digest = hashlib.sha256()
        for name in self.own_files:
            digest.update(f"{name}\0{self.text(name)}\0".encode())
        return digest.hexdigest()

    def has(self, template: str) -> bool:
        """Return whether there is a template ``TEMPLATE.md.jinja``."""
        name = f"{template}.md.jinja"
        return name in self.own_files or (self.folder / name).is_file()

    def render(self, template: str, **values: Any) -> str:  # noqa: ANN401 - templates take any value
        """Render the template ``TEMPLATE.md.jinja``.

        Raises ConfigurationError, naming the template and the line, when it is missing or wrong.
        """
        name = f"{template}.md.jinja"
        try:
            text = self._environment.get_template(name).render(**values)
        except jinja2.TemplateNotFound as error:
            message = (
                f"no prompt template {error.name} in {self.folder}: put it there or use the shipped folder"
            )
            raise ConfigurationError(message) from error
        except jinja2.TemplateSyntaxError as error:
            message = f"prompt template {error.name or name}, line {error.lineno}: {error.message}"
            raise ConfigurationError(message) from error
        except jinja2.TemplateError as error:
            message = f"prompt template {name} cannot be rendered: {error.message}"
            raise ConfigurationError(message) from error
        return text

    def text(self, name: str) -> str:
        """Read a file of the folder unchanged. Raises ConfigurationError when it cannot be read."""
        path = (self.own if self.own and name in self.own_files else self.folder) / name
        try:
            return path.read_text(encoding="utf-8")
        except OSError as error:
            message = f"cannot read {path}: {error.strerror}"
            raise ConfigurationError(message) from error
        except UnicodeDecodeError as error:
            message = f"{path} is not UTF-8 at byte {error.start}: save it as UTF-8"
            raise ConfigurationError(message) from error

    def chapters(self) -> dict[str, str]:
        """Read the chapters of the CuTe DSL guide, by file name. Raises ConfigurationError."""
        names = sorted(path.name for path in (self.folder / "guide").glob("*.md"))
        return {name: self.text(f"guide/{name}") for name in names}

    def strategies(self) -> tuple[Strategy, ...]:
        """Read every strategy of ``strategies.toml``, in order.

        Raises ConfigurationError naming the entry that does not fit.
        """
        try:
            entries = tomllib.loads(self.text("strategies.toml")).get("strategy", [])
        except tomllib.TOMLDecodeError as error:
            message = f"{self.folder / 'strategies.toml'} does not parse: {error}"
            raise ConfigurationError(message) from error
        return tuple(_strategy(entry) for entry in entries)

    def menu(
        self, workload_class: WorkloadClass, parts: tuple[WorkloadClass, ...] = ()
    ) -> tuple[Strategy, ...]:
        """List the strategies for a workload class, or the first of its `parts`, in the order to try them.

        Strategies for the whole class alone come first where the graph has several parts to arrange. They
        come last where it has one part, because the rest of the graph is then its epilogue. Strategies for
        the dominant part precede the others.
        """
        dominant = set(parts[:1])
        fits = [s for s in self.strategies() if not s.classes or {workload_class, *dominant} & set(s.classes)]
        if not dominant:
            return tuple(fits)

        def rank(strategy: Strategy) -> int:
            if strategy.classes == (workload_class,):
                return 0 if len(parts) > 1 else 3
            return 1 if dominant & set(strategy.classes) else 2

        return tuple(sorted(fits, key=rank))


def _own_files(own: Path, shipped: Path) -> tuple[str, ...]:
    """Names of a person's files, relative to their folder, in order. Raises ConfigurationError."""
    if not own.is_dir():
        message = f"--prompts {str(own)!r} is no folder: make it and copy the templates to change into it"
        raise ConfigurationError(message)
    found = sorted(path.relative_to(own).as_posix() for path in own.rglob("*") if path.is_file())
    known = sorted(path.relative_to(shipped).as_posix() for path in shipped.rglob("*") if path.is_file())
    names = [name for name in found if not name.rpartition("/")[2].startswith(".")]
    for name in names:
        if name not in known:
            nearest = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {nearest[0]}?" if nearest else ""
            message = f"{own / name} stands for none of the templates in {shipped}{hint}"
            raise ConfigurationError(message)
    return tuple(names)


_Name = TypeVar("_Name", Optimisation, Condition)


def _names(kind: type[_Name], entry: dict[str, Any], key: str) -> tuple[_Name, ...]:
    """Read the predicates under `key`. Raises ConfigurationError naming an unknown one."""
    known = {item.value: item for item in kind}
    for name in entry.get(key, ()):
        if name not in known:
            nearest = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(map(repr, known))}"
            entry_name = entry.get("name", entry)
            message = f"strategies.toml: {key} of {entry_name!r} names {name!r}, which is unknown; {hint}"
            raise ConfigurationError(message)
    return tuple(known[name] for name in entry.get(key, ()))


def _strategy(entry: dict[str, Any]) -> Strategy:
    try:
        return Strategy(
            name=entry["name"],
            statement=" ".join(entry["statement"].split()),
            classes=tuple(WorkloadClass(item) for item in entry.get("classes", ())),
            bounds=tuple(Bound(item) for item in entry.get("bounds", ())),
            preconditions=tuple(entry.get("needs", ())),
            absent=_names(Optimisation, entry, "absent"),
            excludes=_names(Optimisation, entry, "excludes"),
            present=_names(Optimisation, entry, "present"),
            requires=_names(Condition, entry, "requires"),
            stage=Stage(entry.get("stage", Stage.STRUCTURE)),
            dtypes=tuple(entry.get("dtypes", ())),
            architectures=tuple(entry.get("architectures", ())),
            effects=tuple(
                ExpectedEffect(counter=counter, direction=Direction(direction))
                for counter, direction in entry.get("effects", {}).items()
            ),
        )
    except (KeyError, ValueError) as error:
        message = f"strategies.toml: entry {entry.get('name', entry)!r} lacks or has a wrong value: {error}"
        raise ConfigurationError(message) from error


@cache
def shipped_library() -> PromptLibrary:
    """Library of the shipped folder, cached."""
    return PromptLibrary()
