"""Comparison of two results of a case by its rule.

The exact value of an approximation is computed in extended precision from the same inputs.  Both machines are held to the
documented error, each by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from suite.cases import THREADS, Case
from suite.samples import inputs_of

Array = Any

_LEAST_NORMAL = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
_PLACES = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
_LARGEST = {
    "f16": 65504.0,
    "bf16": 3.3895313892515355e38,
    "f32": float(np.finfo(np.float32).max),
    "f64": float(np.finfo(np.float64).max),
}


def numbers(bits: Array, kind: str) -> Array:
    """Values of bits of a float kind, packed kinds as two rows, as float64 (float64's own as they are)."""
    if kind.endswith("x2"):
        halves = [bits & np.uint32(0xFFFF), bits >> np.uint32(16)]
        return np.stack([numbers(half.astype(np.uint16), kind[:-2]) for half in halves])
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    if kind in {"f32", "tf32"}:
        return bits.astype(np.uint32).view(np.float32).astype(np.float64)
    if kind == "f16":
        return bits.astype(np.uint16).view(np.float16).astype(np.float64)
    return bits.astype(np.uint64).view(np.float64)


def differences(case: Case, hardware: Array, simulated: Array) -> list[str]:
    """One sentence for each way in which the simulator departs from the hardware; empty when they agree."""
    if (
        case.rule.kind == "bits"
        or not case.output.kind.startswith(("f", "b"))
        or case.output.kind in {"b16", "b32", "b64"}
    ):
        return _told(case, hardware, simulated, hardware != simulated)
    with np.errstate(all="ignore"):
        wide = [numbers(one, case.output.kind) for one in (hardware, simulated)]
        if case.rule.kind == "value":
            wrong = (hardware != simulated) & ~_both_nan(wide, case)
            return _told(case, hardware, simulated, wrong)
        if case.rule.kind == "sum":
            return _told(case, hardware, simulated, _far_apart(wide, case.rule.scale, case))
        return _approximate(case, hardware, simulated, wide)


def _both_nan(wide: list[Array], case: Case) -> Array:
    both = np.isnan(wide[0]) & np.isnan(wide[1])
    return both.all(axis=0) if case.output.kind.endswith("x2") else both


def _far_apart(wide: list[Array], bound: float, case: Case) -> Array:
    first, second = wide
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    far = ~same & ~(np.abs(first - second) <= bound)
    return far.any(axis=0) if case.output.kind.endswith("x2") else far


def _told(case: Case, hardware: Array, simulated: Array, wrong: Array) -> list[str]:
    """The first few places where the results differ, with the inputs that gave them."""
    places = np.argwhere(wrong)
    if not len(places):
        return []
    given = inputs_of(case)
    shown = []
    for register, thread in places[:4]:
        values = [" ".join(f"{int(part[thread]):#x}" for part in one.reshape(-1, THREADS)) for one in given]
        shown.append(
            f"thread {thread} register {register}: inputs ({'; '.join(values)}) hardware {int(hardware[register, thread]):#x}, "
            f"simulator {int(simulated[register, thread]):#x}"
        )
    return [f"{len(places)} of {wrong.size} results differ", *shown]


# --- approximations ----------------------------------------------------------------------------------------------------


def _approximate(case: Case, hardware: Array, simulated: Array, wide: list[Array]) -> list[str]:
    kind = case.output.kind.removesuffix("x2")
    flush = ".ftz" in case.name
    given = [numbers(one, case.inputs[0].kind) for one in inputs_of(case)]
    if case.name.startswith("rcp.approx.ftz.f64") or case.name.startswith("rsqrt.approx.ftz.f64"):
        given = [
            (bits.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64)
            for bits in inputs_of(case)
        ]
    if flush:
        given = [np.where(np.abs(one) < _LEAST_NORMAL[kind], np.copysign(0.0, one), one) for one in given]
    exact = EXACT[case.rule.function](*given)
    exact = np.where(
        np.abs(exact) > _LARGEST[kind] * (1 + 2.0 ** -(_PLACES[kind] + 2)), np.copysign(np.inf, exact), exact
    )
    allowed = _allowed(case, exact, given, kind)
    found = []
    for name, bits, values in (("hardware", hardware, wide[0]), ("simulator", simulated, wide[1])):
        shaped = values.reshape(exact.shape)
        fine = (shaped == exact) | (np.isnan(shaped) & np.isnan(exact)) | (np.abs(shaped - exact) <= allowed)
        if flush:
            fine |= (shaped == 0) & (np.abs(exact) < _LEAST_NORMAL[kind])
        fine |= (
            np.isinf(shaped)
            & (np.abs(exact) >= _LARGEST[kind] * (1 - case.rule.relative))
            & (np.sign(shaped) == np.sign(exact))
        )
        fine |= ~_documented(case, given)
        wrong = ~(fine.all(axis=0) if case.output.kind.endswith("x2") else fine).reshape(bits.shape)
        found += [
            f"{name} leaves the documented error: {one}" for one in _told(case, hardware, simulated, wrong)
        ]
    return found


def _allowed(case: Case, exact: Array, given: list[Array], kind: str) -> Array:
    """The documented error, and half a unit of the last place: results cannot be given more finely."""
    rule = case.rule
    place = np.exp2(np.floor(np.log2(np.maximum(np.abs(exact), _LEAST_NORMAL[kind]))) - _PLACES[kind])
    if rule.function in {"sin", "cos"}:
        return np.where(np.abs(given[0]) <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7)
    if rule.function == "lg2":
        near = (given[0] > 0.5) & (given[0] < 2)
        return np.where(near, rule.absolute, rule.relative * np.abs(exact)) + place / 2
    # Below the least normal number the last place is coarser than any relative error.
    least = np.where(np.abs(exact) < _LEAST_NORMAL[kind], place, place / 2)
    return rule.relative * np.abs(exact) + rule.absolute + np.maximum(rule.ulps * place, least)


def _documented(case: Case, given: list[Array]) -> Array:
    """Elements for which the ISA says what the error is."""
    if case.rule.function == "div.approx":
        return (np.abs(given[1]) >= 2.0**-126) | (given[1] == 0) | np.isnan(given[1])
    return np.ones(given[0].shape, np.bool_)


def _divided(x: Array, y: Array) -> Array:
    return (x.astype(np.longdouble) / y.astype(np.longdouble)).astype(np.float64)


def _limited(x: Array, y: Array) -> Array:
    """``div.approx``: zero for divisors above 2¹²⁶, NaN when an infinity is divided by them (PTX ISA, ``div``)."""
    beyond = np.isfinite(y) & (np.abs(y) > 2.0**126)
    result = _divided(x, y)
    return np.where(beyond, np.where(np.isinf(x) | np.isnan(x), np.nan, np.copysign(0.0, result)), result)


EXACT: dict[str, Callable[..., Array]] = {
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "rcp": lambda x: 1.0 / x, "div": _divided, "div.approx": _limited,
}  # fmt: skip
