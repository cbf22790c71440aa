"""Kernel templates: rendering by Jinja from ``cutegen_nb/kernels``, and layout of generated code."""

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
"""Imports of every kernel file."""
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
    """Render ``TEMPLATE.py.jinja`` with `values`; a missing value is an error."""
    return _environment().get_template(f"{template}.py.jinja").render(**values)


def joined(lines: Sequence[str]) -> str:
    """Join lines to one block of text."""
    return "\n".join(lines)


LONGEST_LINE = 100
"""Column limit of generated code, in characters; longer lists of parameters are broken."""


def wrapped(items: Sequence[str], lead: int) -> str:
    """Join the items of a bracket opened after `lead` characters: one line if they fit, else indented."""
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
    """Template values for a kernel's signature: its name, the parameters of both functions, the arguments."""
    items = [f"{item}: cute.Tensor" for item in tensors] + [f"{item}: cutlass.Constexpr" for item in numbers]
    return {
        "name": name,
        "params": wrapped(items, len(f"def {name}_kernel():")),
        "host_params": wrapped([*items, "stream: cuda.CUstream"], len(f"def {name}():")),
        "arguments": ", ".join([*tensors, *numbers]),
    }


def indented(lines: Sequence[str], depth: int = 1) -> list[str]:
    """Indent lines by `depth` levels of four spaces."""
    return ["    " * depth + line if line else line for line in lines]
