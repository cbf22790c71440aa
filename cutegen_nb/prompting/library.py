"""Where prompt templates and the strategy library come from.

Templates are files, one purpose each, rendered strictly: a name the caller did not give is an error,
and a template can neither run Python nor read other files.  They live in ``prompts/`` of the source
tree and in ``cutegen_nb/prompts`` of the wheel.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.core.strategy import Bound, Direction, ExpectedEffect, Strategy

_PACKAGE = Path(__file__).resolve().parent.parent


def prompts_folder() -> Path:
    """The folder of the shipped templates: the wheel's, else the source tree's.

    Raises ConfigurationError when neither is there.
    """
    for folder in (_PACKAGE / "prompts", _PACKAGE.parent / "prompts"):
        if (folder / "contract.md.jinja").is_file():
            return folder
    message = f"no prompt templates beside {_PACKAGE}: install the package again"
    raise ConfigurationError(message)


def fenced(text: str, language: str = "") -> str:
    """`text` in a fenced block whose fence is longer than any run of backticks inside it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def quoted(text: str) -> str:
    """`text` as a Markdown quotation, so that a person's words are told apart from ours."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines()) + "\n"


class PromptLibrary:
    """Templates and strategies read from one folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or prompts_folder()
        self._environment = ImmutableSandboxedEnvironment(
            loader=jinja2.FileSystemLoader(self.folder),
            undefined=jinja2.StrictUndefined,
            autoescape=False,  # the text goes to a model, not to a browser
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters["fenced"] = fenced
        self._environment.filters["quoted"] = quoted

    def render(self, template: str, **values: Any) -> str:  # noqa: ANN401 - templates take any value
        """Text of the template ``TEMPLATE.md.jinja``.

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
        """A file of the folder as it is. Raises ConfigurationError when it cannot be read."""
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except OSError as error:
            message = f"cannot read {self.folder / name}: {error.strerror}"
            raise ConfigurationError(message) from error

    def strategies(self) -> tuple[Strategy, ...]:
        """Every strategy of ``strategies.toml``, in order.

        Raises ConfigurationError naming the entry that does not fit.
        """
        try:
            entries = tomllib.loads(self.text("strategies.toml")).get("strategy", [])
        except tomllib.TOMLDecodeError as error:
            message = f"{self.folder / 'strategies.toml'} does not parse: {error}"
            raise ConfigurationError(message) from error
        return tuple(_strategy(entry) for entry in entries)

    def menu(self, workload_class: WorkloadClass) -> tuple[Strategy, ...]:
        """Strategies that fit a workload class, in the order to try them."""
        return tuple(s for s in self.strategies() if not s.classes or workload_class in s.classes)


def _strategy(entry: dict[str, Any]) -> Strategy:
    try:
        return Strategy(
            name=entry["name"],
            statement=" ".join(entry["statement"].split()),
            classes=tuple(WorkloadClass(item) for item in entry.get("classes", ())),
            bounds=tuple(Bound(item) for item in entry.get("bounds", ())),
            preconditions=tuple(entry.get("needs", ())),
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
    """The library of the shipped folder, read once."""
    return PromptLibrary()
