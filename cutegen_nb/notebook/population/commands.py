"""Handlers of the line magics on a population: its table, and the decisions at the gate of an epoch."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from cutegen_nb.core.round import Action
from cutegen_nb.notebook.approver import Answer, Gate
from cutegen_nb.notebook.handle import DisplayResult
from cutegen_nb.notebook.session_registry import SessionRegistry
from cutegen_nb.report.html.population import population_section
from cutegen_nb.report.markup import Style
from cutegen_nb.report.terminal.population import population_table

_OF_A_REVISION = frozenset({Action.PIN, Action.DROP})
"""Actions whose first word is a revision and whose other words are the reason."""


def population(desk: SessionRegistry, options: argparse.Namespace) -> DisplayResult | str:
    """Show the kernels and epochs of a session; at the gate of an epoch with its draft."""
    handle = desk.stored_handle(options.session, options.store)
    draft = None
    if options.store is None and handle.name in desk.names():
        gate = desk.find(handle.name).gate
        draft = gate.draft if gate else None
    text = population_table(handle.session, draft)
    html = population_section(handle.session, style=Style.RECORD, draft=draft)
    return DisplayResult({"text/html": html, "text/plain": text}) if html else text


def gate_words(gate: Gate) -> str:
    """Return the words of the open gate; at the end of an epoch with the command that shows its members."""
    return f"{gate.words}\n`%cutegen population` shows the members" if gate.draft else gate.words


def deciding(action: Action) -> Callable[[SessionRegistry, argparse.Namespace], str]:
    """Return the handler that answers the gate of an epoch with `action`."""

    def decide(desk: SessionRegistry, options: argparse.Namespace) -> str:
        edited, reason = options.words.strip(), ""
        if action in _OF_A_REVISION:
            edited, _, reason = edited.partition(" ")
        return desk.asked(options.name).decide(Answer(action=action, edited=edited, reason=reason))

    return decide
