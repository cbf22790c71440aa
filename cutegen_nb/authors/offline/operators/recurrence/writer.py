"""Writer of loops over the steps of recurrent layers: the strategies that fit, and the text of a kernel."""

from __future__ import annotations

from cutegen_nb.authors.offline.operators.operator import OperatorCall, OperatorMatch, OperatorText
from cutegen_nb.authors.offline.operators.recurrence.layers import KINDS
from cutegen_nb.authors.offline.operators.recurrence.matching import Recurrence, recurrences_in
from cutegen_nb.authors.offline.operators.recurrence.strategies import (
    ASYNCHRONOUS,
    ASYNCHRONOUS_STRATEGY,
    ON_CHIP,
    ON_CHIP_STRATEGY,
    PREFETCH,
    PREFETCH_STRATEGY,
)
from cutegen_nb.authors.offline.templates import render, signature, wrapped
from cutegen_nb.core.errors import Declined
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.strategy import Strategy

_GATES = dict(KINDS.values())
_LONGEST_STATE = 16384
"""Hidden units whose states, twice, and cells fit the shared memory of a CTA."""
_LANES = 8
"""Lanes that share a hidden unit, and CTAs of a cluster: each lane sends the unit's state to one of them."""
_UNITS_TO_DIVIDE = 32
"""Hidden units from which on a cluster divides them."""
_MOST_WEIGHTS = 128
"""Weights that a thread holds, of its 255 registers; sums for several rows of the batch take many others."""
_OTHER_REGISTERS = 64
"""Registers of a thread for all but its weights."""
_REGISTERS = 65536
"""Registers of a multiprocessor."""


class RecurrenceWriter:
    """Writer of the steps of LSTM, GRU and plain recurrent layers."""

    def matches(self, graph: Graph) -> tuple[OperatorMatch, ...]:
        """Find the loops over steps in a graph, in order."""
        return recurrences_in(graph)

    def menu(self, call: OperatorCall) -> tuple[Strategy, ...]:
        """List the strategies: none where the weights do not fit a cluster. Raises Declined."""
        units = _attributes(call).units
        if units > _LONGEST_STATE:
            raise Declined(
                f"the state of a recurrent layer of {units} hidden units does not fit shared memory"
            )
        steps = (ON_CHIP_STRATEGY, PREFETCH_STRATEGY, ASYNCHRONOUS_STRATEGY)
        return steps if _fits(_attributes(call)) else ()

    def write(self, call: OperatorCall, applied: tuple[str, ...]) -> OperatorText:
        """Write the kernel with the strategies in `applied`. Raises Declined."""
        if call.tail is not None:
            raise Declined("the offline author fuses nothing into the steps of a recurrent layer")
        on_chip = bool({ON_CHIP, PREFETCH, ASYNCHRONOUS} & set(applied)) and _fits(_attributes(call))
        values = _values(call, applied if on_chip else ())
        source = render("recurrence/on_chip" if on_chip else "recurrence/simple", **values)
        return OperatorText(source=source, constants={})


def _attributes(call: OperatorCall) -> Recurrence:
    assert isinstance(call.attributes, Recurrence)
    return call.attributes


def _fits(found: Recurrence) -> bool:
    """Return whether the CTAs of a cluster hold all weights in their registers."""
    ctas = _LANES if found.units >= _UNITS_TO_DIVIDE else 1
    threads = _LANES * 4 * -(-found.units // (ctas * 4))
    weights = _GATES[found.kind] * 4 * -(-found.units // (_LANES * 4))
    return weights <= _MOST_WEIGHTS and threads * (weights + _OTHER_REGISTERS) <= _REGISTERS


def _values(call: OperatorCall, applied: tuple[str, ...]) -> dict[str, object]:
    """Values of the templates; without strategies those of the first kernel."""
    found = _attributes(call)
    on_chip, asynchronous = bool(applied), ASYNCHRONOUS in applied
    numbers = ["ctas", "units", "rows"] if on_chip else ["units"]
    memory = ["states", "full"] if asynchronous else ["states"]
    both, has_cell = found.directions > 1, found.kind == "lstm"
    own = ["mW", "mBx", "mBh"] if found.biases else ["mW"]
    states = ["mH", "mC"] if has_cell else ["mH"]
    back = [f"{item}b" for item in own] if both else []
    tensors = ["mX", *(["mXb"] if both else []), *own, *back, *states]
    names = [{"mX": "x", "mXb": "x_b", "mH": "h", "mC": "c"}.get(item, item[1:].lower()) for item in tensors]
    return {
        **signature(call.name, [*tensors, "mY"], numbers),
        "NAME": call.name.upper(),
        "kind": found.kind,
        "gates": _GATES[found.kind],
        "both": both,
        "directions": found.directions,
        "has_cell": has_cell,
        "biases": found.biases,
        "cells": found.cells,
        "row": "b * T + t" if found.batch_first else "t * B + b",
        "width": "2 * H" if both else "H",
        "batch_first": found.batch_first,
        "on_chip": on_chip,
        "prefetch": PREFETCH in applied,
        "asynchronous": asynchronous,
        "memory": ", ".join(memory),
        "step_params": _parameters(
            f"{call.name}_steps",
            ["mX", *own, *states, "mY", *([] if on_chip else ["sH", "sC"])],
            [*memory, "first", "direction"] if on_chip else ["b", "direction"],
            numbers,
        ),
        "load_params": _parameters(
            call.name + "_load", ["mX", "mH", "rX"], ["t", "unit", "first", "present", "B", "T"], ["rows"]
        ),
        "chosen": ["mX", *own] if both else [],
        "step_arguments": ", ".join(["mX", *own, *states]),
        "names": ", ".join(names),
        "summary": _summary(found),
    }


def _parameters(function: str, tensors: list[str], values: list[str], numbers: list[str]) -> str:
    """Parameters of a function of the kernel: tensors, values known at run time, and numbers known before."""
    items = [f"{item}: cute.Tensor" for item in tensors] + values
    items += [f"{item}: cutlass.Constexpr" for item in numbers]
    return wrapped(items, len(f"def {function}():"))


def _summary(found: Recurrence) -> str:
    words = {"lstm": "an LSTM", "gru": "a GRU"}.get(found.kind, f"a recurrent layer with {found.kind}")
    both = " in both directions" if found.directions > 1 else ""
    behind = ", and behind them the last states of its cells" if found.cells else ""
    return f"States of {words} after each step{both}, one row each in the order of `x`{behind}."
