"""Baselines that were requested but could not be made."""

from __future__ import annotations

import re

from cutegen_nb.core.evaluation import Evaluation

_KIND = "no-baseline"
_MESSAGE = re.compile(r"Baseline (\S+) could not be made: (.*)", re.DOTALL)


def missing_baselines(evaluation: Evaluation) -> tuple[tuple[str, str], ...]:
    """Return the name and the reason of each baseline that could not be made."""
    found = []
    for finding in evaluation.findings:
        if finding.kind == _KIND:
            told = _MESSAGE.fullmatch(finding.message)
            name, reason = told.groups() if told else ("a baseline", finding.message)
            found.append((name, " ".join(reason.split())))
    return tuple(found)
