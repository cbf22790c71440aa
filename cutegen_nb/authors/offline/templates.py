"""Kernel sources by name, read as text from ``cutegen_nb/kernels``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2

IMPORTS = (
    "import cuda.bindings.driver as cuda",
    "import cutlass",
    "import cutlass.cute as cute",
    "import torch",
)
"""What every kernel's file imports."""
_FOLDER = Path(__file__).resolve().parents[2] / "kernels"


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - Python source, never HTML
        keep_trailing_newline=True,
    )


def render(template: str, /, **values: object) -> str:
    """The template ``TEMPLATE.py.jinja`` with `values` filled in; a missing value is an error."""
    return _environment().get_template(f"{template}.py.jinja").render(**values)


def joined(lines: Sequence[str]) -> str:
    """Lines as one block of text."""
    return "\n".join(lines)


LONGEST_LINE = 100
"""Lists of parameters and arguments are broken before they pass it."""


def wrapped(items: Sequence[str], lead: int) -> str:
    """Items of a bracket that opens after `lead` characters: on one line where they fit, else indented."""
    line = ", ".join(items)
    if lead + len(line) <= LONGEST_LINE:
        return line
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + len(item) + 6 <= LONGEST_LINE:
            lines[-1] += f" {item},"
        else:
            lines.append(f"    {item},")
    return "\n" + "\n".join(lines) + "\n"


def signature(name: str, tensors: Sequence[str], numbers: Sequence[str]) -> dict[str, str]:
    """Values that every kernel template takes: the name, parameters of both functions, arguments."""
    items = [f"{item}: cute.Tensor" for item in tensors] + [f"{item}: cutlass.Constexpr" for item in numbers]
    return {
        "name": name,
        "params": wrapped(items, len(f"def {name}_kernel():")),
        "host_params": wrapped([*items, "stream: cuda.CUstream"], len(f"def {name}():")),
        "arguments": ", ".join([*tensors, *numbers]),
    }


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Lines moved right by `depth` levels."""
    return ["    " * depth + line if line else line for line in lines]
