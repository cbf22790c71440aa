"""Worked examples for requests: kernels of the templates for small problems, chosen by the request.

A request gets the example that shows its strategy for its own workload class, element type and architecture,
or none. `cutegen_nb/kernels/examples` holds the table of examples and the traced graphs of their problems.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from cutegen_nb.authors.offline.author import WRITERS
from cutegen_nb.authors.offline.outline import outlined
from cutegen_nb.core.codec import decode
from cutegen_nb.core.ports import GuideRequest
from cutegen_nb.core.problem import Problem, ProblemFacts, ProblemForm

LONGEST_CHARACTERS = 14_000
"""Largest length of an example in a request, as far as one line for each function permits."""
FOLDER = Path(__file__).resolve().parents[2] / "kernels" / "examples"
"""Folder with the table of examples and the facts of their problems."""
_MODULE = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__(){init}

    def forward(self, {names}):
        return {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""
_LEAD = (
    "A kernel for another problem of this class: take its structure, not its sizes. A body `...` is left out "
    "here."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One kernel of the templates, for a problem of its own."""

    name: str
    """Name, unique in the table."""
    title: str
    """Problem and structure of the kernel, in a line."""
    classes: tuple[str, ...]
    """Workload classes that it fits, as `WorkloadClass` spells them."""
    dtypes: tuple[str, ...]
    """Element types that it fits."""
    architectures: tuple[str, ...]
    """Architectures that it fits, without suffix; empty for any."""
    shows: tuple[str, ...]
    """Names of the strategies of the library that it carries out."""
    steps: tuple[str, ...]
    """The offline author's strategies that lead to it."""
    focus: tuple[str, ...]
    """Patterns of the names of the functions that matter, the most important first."""
    source: str
    """Reference of its problem."""

    def fits(self, request: GuideRequest) -> bool:
        """Return whether it shows the request's strategy for its class, float types and device."""
        floats = {dtype for dtype in request.dtypes if "float" in dtype}
        return (
            request.wanted in self.shows
            and bool(set(self.classes) & set(request.classes))
            and bool(floats)
            and floats <= set(self.dtypes)
            and (not self.architectures or request.architecture.rstrip("af") in self.architectures)
        )

    @property
    def problem(self) -> Problem:
        """Problem that the kernel is written for."""
        return Problem(name=self.name, source=self.source, form=ProblemForm.KERNELBENCH)


def worked_example(request: GuideRequest) -> str:
    """Return the first example that fits `request` as Markdown; empty where none does."""
    found = next((item for item in examples() if item.fits(request)), None)
    if found is None:
        return ""
    code = outlined(kernel_of(found), found.focus, LONGEST_CHARACTERS)
    return f"## Worked example: {found.title}\n{_LEAD}\n\n```python\n{code}```\n"


@cache
def examples() -> tuple[Example, ...]:
    """Return the table of examples, in order."""
    entries = tomllib.loads((FOLDER / "examples.toml").read_text(encoding="utf-8"))["example"]
    return tuple(_example(entry) for entry in entries)


@cache
def kernel_of(example: Example) -> str:
    """Write the kernel of an example, a whole file."""
    facts = _facts()[example.name]
    writer = next(item for item in WRITERS if item.accepts(facts))
    return writer.write(example.problem, facts, example.steps).source


@cache
def _facts() -> dict[str, ProblemFacts]:
    stored = json.loads((FOLDER / "facts.json").read_text(encoding="utf-8"))
    return {name: decode(ProblemFacts, facts) for name, facts in stored.items()}


def _example(entry: dict[str, Any]) -> Example:
    init = f"\n        {entry['init']}" if "init" in entry else ""
    inputs = entry["inputs"]
    source = _MODULE.format(
        init=init,
        names=", ".join("xyz"[: len(inputs)]),
        forward=entry["forward"],
        inputs=", ".join(inputs),
    )
    lists = {
        name: tuple(entry.get(name, ()))
        for name in ("classes", "dtypes", "architectures", "shows", "steps", "focus")
    }
    return Example(name=entry["name"], title=entry["title"], source=source, **lists)
