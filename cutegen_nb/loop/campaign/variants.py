"""Variants of a campaign for ablations: one setting changed, everything else the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.session import Plan, PromptPart, Schedule

PlanChange = Callable[[Plan, str], Plan]
"""Function that applies one value of an ablation to a plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """Setting that a variant may change."""

    values: tuple[str, ...]
    """Its values, as they are typed."""
    change: PlanChange
    """Function that applies a value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A campaign with one setting changed, or without any change."""

    name: str = ""
    """The change as it is typed: ``guide=off``; empty for the campaign without a change."""

    def plan(self, plan: Plan) -> Plan:
        """Apply the change to a plan."""
        setting, _, value = self.name.partition("=")
        return ABLATIONS[setting].change(plan, value) if self.name else plan


def _without(part: PromptPart) -> Ablation:
    def change(plan: Plan, value: str) -> Plan:
        others = tuple(one for one in plan.without if one is not part)
        return replace(plan, without=others if value == "on" else (*others, part))

    return Ablation(values=("on", "off"), change=change)


def _scheduled(plan: Plan, value: str) -> Plan:
    return replace(plan, schedule=Schedule(value))


def _evolving(plan: Plan, value: str) -> Plan:
    return replace(plan, population=int(value))


ABLATIONS: dict[str, Ablation] = {
    "schedule": Ablation(values=tuple(Schedule), change=_scheduled),
    **{part.value: _without(part) for part in PromptPart},
    # A population has the rounds of the chain that it is compared with, and as many epochs as fill them.
    "population": Ablation(values=tuple(map(str, range(1, 9))), change=_evolving),
}
"""Settings that ``--ablate NAME=VALUE`` changes, by name."""


def parse_variant(text: str) -> Variant:
    """Read ``NAME=VALUE``. Raises UsageError with the known names and values."""
    setting, _, value = text.partition("=")
    found = ABLATIONS.get(setting)
    if found is None or value not in found.values:
        known = ", ".join(f"{name}={'|'.join(one.values)}" for name, one in ABLATIONS.items())
        message = f"{text!r} is no ablation: give one of {known}"
        raise UsageError(message)
    return Variant(name=text)


def check_variants(variants: tuple[Variant, ...], base: Plan) -> None:
    """Check that each variant differs from the campaign without a change. Raises UsageError."""
    for variant in variants:
        if variant.plan(base) == base:
            message = (
                f"--ablate {variant.name} changes nothing: the campaign has this setting "
                "already; take the option away"
            )
            raise UsageError(message)
