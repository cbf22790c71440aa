"""`cutegen-nb checks`: list of the evaluator's checks, with tier, device and cost."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.evaluated import TESTED_PROPERTY
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.evaluator.catalog.catalog import CHECKS
from cutegen_nb.evaluator.catalog.check import Check
from cutegen_nb.report.terminal.fitting import paragraph


async def checks(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """List the checks."""
    if options.json:
        found = {"checks": [_json(item) for item in CHECKS]}
        return CommandResult(status=PASSED, text=json.dumps(found, indent=2))
    return CommandResult(status=PASSED, text=_text(CHECKS))


def _text(found: Sequence[Check]) -> str:
    """Format the checks by question, then by tier; each check is one line, folded on a terminal."""
    lines: list[str] = []
    for question in dict.fromkeys(TESTED_PROPERTY.values()):
        lines += [*([""] if lines else []), f"A kernel that {question}:"]
        asked = [item for item in found if TESTED_PROPERTY[item.name] == question]
        for item in sorted(asked, key=lambda item: item.tier.value):
            marks = "; ".join(filter(None, _marks(item)))
            lines += paragraph(
                f"{item.name}: {item.stops} [{marks}]", "      ", first=f"  {item.tier.value}  "
            )
    legend = (
        "After a name: what it stops. In brackets: where it runs if not everywhere, and its cost if any.",
        "Tier A: every round. B: before a revision may become the best. C: before an export, on demand.",
        "A check refuses a candidate; one marked flag tells a person and refuses nothing.",
        "GPU*: the simulator looks for the same by itself, in every launch.",
    )
    return "\n".join([*lines, "", *(part for line in legend for part in paragraph(line))])


def _marks(item: Check) -> tuple[str, ...]:
    """Return the exceptions of a check: flags only, runs on one kind of device, has a cost."""
    cost = "" if item.cost == "free" else item.cost.removeprefix("free; ")
    return ("" if item.decides else "flag", _where(item), cost)


def _where(item: Check) -> str:
    if item.needs_gpu:
        return "GPU*" if item.instead else "GPU"
    return "simulator" if item.needs_simulator else ""


def _json(item: Check) -> dict[str, object]:
    return {
        "name": item.name,
        "protocol": [word.strip() for word in item.protocol.split(",")],
        "tier": item.tier.value,
        "decides": item.decides,
        "stops": item.stops,
        "cost": item.cost,
        "needs_gpu": item.needs_gpu,
        "needs_simulator": item.needs_simulator,
        "instead": item.instead,
    }
