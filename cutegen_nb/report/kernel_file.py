"""Exported kernel files: a kernel as an importable Python file that can be verified later.

A few comment lines for readers stand above the kernel. Below it, also as comments, stands the data that
``cutegen-nb verify`` needs: the problem, the DSL's version and the kernel's digest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cutegen_nb.core.candidate import source_digest
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.problem import Problem

_BEGIN, _END = "# /// cutegen-nb", "# ///"
"""Marks around the comment block."""
FORMAT = 1
"""Version of the comment block's format."""
DSL = "nvidia-cutlass-dsl"
"""Package name of the CuTe DSL, as a key of the environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFile:
    """Exported kernel, read back from its file."""

    source: str
    """Kernel source, without the comments around it."""
    problem: Problem
    """Problem that the kernel was written for."""
    edited: bool
    """True if the kernel differs from the one that was exported."""
    revision: str
    """Name of the revision: ``r3 of softmax``."""
    environment: dict[str, str]
    """Package versions that the kernel was judged with."""


def kernel_file(
    source: str, problem: Problem, *, revision: str, judged: str, environment: Mapping[str, str]
) -> str:
    """Format the file. `judged` tells in a sentence how the kernel was judged."""
    version = environment.get(DSL)
    head = (
        f"# {revision}, exported by cutegen-nb. {judged}\n"
        f"# It needs torch and {DSL}{f'=={version}, with which it was judged' if version else ''}.\n"
        "# Judge it again with `cutegen-nb verify` and this file's name; the problem stands below.\n"
    )
    facts = {
        "format": FORMAT,
        "revision": revision,
        "kernel_sha256": source_digest(source),
        "head_lines": head.count("\n"),
        "environment": dict(environment),
        # The path on the exporting machine is private and of no use elsewhere.
        "problem": {**encode(replace(problem, path="")), "source": problem.source.split("\n")},
    }
    block = "\n".join(f"# {line}" for line in json.dumps(facts, indent=1).split("\n"))
    return f"{head}{source}\n{_BEGIN}\n{block}\n{_END}\n"


def read_kernel_file(text: str, name: str) -> KernelFile:
    """Parse an exported kernel. Raises UsageError if `name` is no exported kernel or its block is damaged."""
    before, mark, rest = text.rpartition(f"\n{_BEGIN}\n")
    block, end, _ = rest.partition(f"\n{_END}")
    if not mark or not end:
        raise UsageError(
            f"{name} has no `{_BEGIN}` block, so that it is no exported kernel: "
            "judge any other file with `cutegen-nb evaluate PROBLEM.py KERNEL.py`"
        )
    try:
        facts = json.loads("\n".join(line.removeprefix("# ") for line in block.split("\n")))
        return _read(before, facts)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"the `{_BEGIN}` block of {name} cannot be read ({type(error).__name__}: {error}): "
            "export it again"
        ) from error


def kernel_source(text: str, name: str) -> str:
    """Return a kernel's source, of an exported file without what the export wrote around it."""
    return read_kernel_file(text, name).source if f"\n{_BEGIN}\n" in text else text


def _read(before: str, facts: dict[str, Any]) -> KernelFile:
    if facts["format"] != FORMAT:
        message = f"format {facts['format']!r}, and this cutegen-nb reads format {FORMAT}"
        raise ValueError(message)
    # Only the comment lines above the kernel are cut, so that the kernel's own text stays exact.
    source = before.split("\n", int(facts["head_lines"]))[-1]
    problem = {**facts["problem"], "source": "\n".join(facts["problem"]["source"])}
    return KernelFile(
        source=source,
        problem=decode(Problem, problem),
        edited=source_digest(source) != facts["kernel_sha256"],
        revision=str(facts["revision"]),
        environment={str(key): str(value) for key, value in facts["environment"].items()},
    )
