"""`cutegen-nb instructions`: PTX instructions that the simulator executes, by architecture."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cutegen_nb.app.output import columns
from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.simulator.state.architectures import LARGEST_ARCHITECTURE

if TYPE_CHECKING:
    from cutegen_nb.simulator.isa.instruction_set import InstructionForm


async def instructions(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """List the PTX instructions simulated for ``--arch``, and the unsupported ones of any architecture."""
    from cutegen_nb.simulator.isa.instruction_set import instruction_set  # noqa: PLC0415 - only this command needs it

    architecture = options.arch or LARGEST_ARCHITECTURE
    rows = instruction_set()
    simulated = [one for one in rows if one.supported and one.on(architecture)]
    missing = [one for one in rows if not one.supported]
    if options.json:
        text = json.dumps(_as_json(architecture, simulated, missing), indent=2)
    elif options.markdown:
        text = _as_markdown(architecture, simulated, missing)
    else:
        text = _as_text(architecture, simulated, missing)
    return CommandResult(status=PASSED, text=text)


def _as_json(
    architecture: str, simulated: Sequence[InstructionForm], missing: Sequence[InstructionForm]
) -> dict[str, Any]:
    return {
        "architecture": architecture,
        "simulated": [
            {"instruction": one.name, "forms": one.forms, "since": one.since, "chapter": one.chapter}
            for one in simulated
        ],
        "not_simulated": [
            {"instruction": one.name, "forms": one.forms, "since": one.since, "chapter": one.chapter}
            for one in missing
        ],
    }


def _as_text(
    architecture: str, simulated: Sequence[InstructionForm], missing: Sequence[InstructionForm]
) -> str:
    header = ("instruction", "since", "chapter of the PTX ISA", "forms")
    table = [(one.name, one.since, _short(one.chapter), one.forms) for one in simulated]
    return (
        f"{columns(header, table)}\n\n"
        f"{len(simulated)} instruction forms are simulated for {architecture}. A kernel that reaches one of "
        f"these stops with its name and line:\n{_by_architecture(missing)}"
    )


def _as_markdown(
    architecture: str, simulated: Sequence[InstructionForm], missing: Sequence[InstructionForm]
) -> str:
    lines = [
        f"{len(simulated)} instruction forms are simulated for {architecture}.", "",
        "| instruction | since | chapter of the PTX ISA | forms |", "|---|---|---|---|",
    ]  # fmt: skip
    cells = ((one.name, one.since, _short(one.chapter), one.forms) for one in simulated)
    lines += [f"| `{name}` | {since} | {chapter} | {forms} |" for name, since, chapter, forms in cells]
    return "\n".join([*lines, "", "Not simulated, by the first architecture that has them:", "",
                      *(f"- {line}" for line in _by_architecture(missing).splitlines())])  # fmt: skip


def _short(chapter: str) -> str:
    return chapter.removesuffix(" Instructions")


def _by_architecture(missing: Sequence[InstructionForm]) -> str:
    """List the instructions not simulated, with their forms, by the first architecture that has them."""
    # sm_90 before sm_90a before sm_100.
    ages = sorted({one.since for one in missing}, key=lambda age: (int(age.strip("sm_a+")), age))
    lines = []
    for age in ages:
        names = [
            f"{one.name} ({one.forms})" if one.forms else one.name for one in missing if one.since == age
        ]
        lines.append(f"{age}: {', '.join(dict.fromkeys(names))}")
    return "\n".join(lines)
