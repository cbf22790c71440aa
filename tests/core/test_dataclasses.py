"""Rules that every dataclass of core keeps: frozen, slotted, and the same after a trip through JSON."""

from __future__ import annotations

import enum
import importlib
import json
import pkgutil
import types
import typing
from dataclasses import FrozenInstanceError, fields, is_dataclass, replace

import pytest

from cutegen_nb import core
from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.estimate import Estimate
from cutegen_nb.core.evaluation import Evaluation, Judged, Verdict
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.search.knowledge import StrategyRecord
from cutegen_nb.core.timing import Timing

MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(core.__path__, f"{core.__name__}.")
    if not found.ispkg
]
KINDS = sorted(
    (
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and is_dataclass(kind) and kind.__module__ == module.__name__
    ),
    key=lambda kind: kind.__name__,
)


def example(hint, at):
    """A value that fits a type hint; `at` chooses the members of enumerations and of unions: 0 or -1."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, typing.ForwardRef | str):
        return 7  # `core.graph.Argument`, which refers to itself
    if origin in {typing.Union, types.UnionType}:
        return example(inner[at], at)
    if origin is tuple:
        some = inner[:1] if inner[-1] is Ellipsis else inner
        return tuple(example(item, at) for item in some)
    if origin is dict:
        return {example(inner[0], at): example(inner[1], at)}
    if hint is Severity:
        return Severity.FLAG  # a finding that decides contradicts a pass
    if issubclass(hint, enum.Enum):
        return list(hint)[at]
    if is_dataclass(hint):
        return made(hint, at)
    return {str: "text", int: 3, float: 1.5, bool: True, types.NoneType: None}[hint]


def made(kind, at):
    """A value of a dataclass, with every field given."""
    hints = typing.get_type_hints(kind)
    return kind(**{item.name: example(hints[item.name], at) for item in fields(kind) if item.init})


def test_the_dataclasses_of_core_are_found():
    names = {kind.__name__ for kind in KINDS}
    assert {"Session", "Evaluation", "StrategyRecord", "CampaignRecord", "FullSizeSample", "Epoch"} <= names
    assert len(KINDS) > 60


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_value_cannot_be_changed_and_comes_back_from_json_as_it_was(kind):
    for at in (0, -1):
        value = made(kind, at)
        assert decode(kind, json.loads(json.dumps(encode(value)))) == value
        with pytest.raises((FrozenInstanceError, AttributeError)):
            setattr(value, fields(kind)[0].name, None)
        with pytest.raises((AttributeError, TypeError)):
            value.no_such_field = 1
        assert not hasattr(value, "__dict__")


PASSED = Evaluation(outcome=Judged(verdict=Verdict.PASSED), summary="", device="")
TIMING = Timing(median_ms=1.0, samples_ms=(1.0,), baselines=(), bandwidth_bytes_per_s=1e12)
NO_LATENCY = "is no latency"
HOLD = "an interval must hold its estimate"
POSITIVE = "must be finite and above 0"


@pytest.mark.parametrize(
    ("value", "broken", "said"),
    [
        (PASSED, {"outcome": Judged(verdict=Verdict.CHEATED)}, "CHEATED needs its evidence"),
        (PASSED, {"outcome": Judged(verdict=Verdict.NOT_OWN_WORK)}, "NOT_OWN_WORK needs its evidence"),
        (PASSED, {"findings": (Finding(kind="race", message="."),)}, "contradicts the deciding finding race"),
        (TIMING, {"median_ms": float("nan")}, NO_LATENCY),
        (TIMING, {"median_ms": float("inf")}, NO_LATENCY),
        (TIMING, {"median_ms": -0.1}, NO_LATENCY),
        (TIMING, {"samples_ms": (1.0, -1.0)}, "samples_ms"),
        (TIMING, {"samples_ms": (float("nan"),)}, "samples_ms"),
        (made(Estimate, 0), {"seconds_low": 0.0}, HOLD),
        (made(Estimate, 0), {"seconds_low": 2.0}, HOLD),
        (made(Estimate, 0), {"seconds_high": 1.0}, HOLD),
        (made(Estimate, 0), {"seconds": float("nan")}, HOLD),
        *(
            (made(StrategyRecord, 0), {name: wrong}, f"{name} is .*{POSITIVE}")
            for name in ("seconds", "speedup", "total_speedup")
            for wrong in (0.0, -1.0, float("inf"), float("nan"))
        ),
    ],
)
def test_each_invariant_refuses_what_breaks_it(value, broken, said):
    with pytest.raises(ValueError, match=said):
        replace(value, **broken)
    if "outcome" in broken:
        return  # what the first version stored without evidence still reads
    with pytest.raises(ValueError, match=said):
        decode(type(value), {**encode(value), **{name: encode(one) for name, one in broken.items()}})


def test_a_latency_of_zero_is_one_that_a_coarse_clock_gives():
    assert replace(TIMING, median_ms=0.0, samples_ms=(0.0,)).median_ms == 0
