"""Set-up of a campaign: its problems, its name, the record of its settings, and what changed since."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cutegen_nb.analysis.problem.problem_files import only, problem_files, unique_names
from cutegen_nb.analysis.problem.problem_text import read_problem
from cutegen_nb.app.budgets import plan_of
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import ProblemError, UsageError
from cutegen_nb.core.library import Library, library_option
from cutegen_nb.core.search.campaign import CampaignRecord
from cutegen_nb.core.session import Plan
from cutegen_nb.loop.campaign.variant_run import CampaignProblem, VariantRun
from cutegen_nb.loop.campaign.variants import Variant
from cutegen_nb.loop.effects import Effects
from cutegen_nb.store.campaign_file import read_campaign, write_campaign
from cutegen_nb.store.sqlite import FILE_NAME, SqliteStore
from cutegen_nb.wiring import Settings

_BUDGETS = (
    "rounds", "tokens", "dollars", "minutes", "gpu_minutes", "person_minutes",
    "total_tokens", "total_dollars", "total_minutes", "total_gpu_minutes",
)  # fmt: skip
"""Options that limit a campaign, as names of the parsed options."""
_NONE = "none"
"""Word for an option that was not given."""


def campaign_problems(
    given: Sequence[str], wanted: str | None, library: Library
) -> tuple[tuple[CampaignProblem, ...], int]:
    """Read the problems of folders and files; also return the number of files before `wanted` chose some.

    A file that states no problem becomes a problem with its fault. Raises UsageError.
    """
    files = problem_files(given)
    names = unique_names(files)
    chosen = only(files, wanted) if wanted else files
    return tuple(_problem(path, names[path], library) for path in chosen), len(files)


def _problem(path: Path, name: str, library: Library) -> CampaignProblem:
    try:
        problem = read_problem(str(path), name=name, library=library)
    except ProblemError as error:
        return CampaignProblem(name=name, file=str(path), problem=None, fault=str(error))
    return CampaignProblem(name=name, file=str(path), problem=problem)


def campaign_name(given: Sequence[str], name: str | None) -> str:
    """Return the name of a campaign: the given one, else that of the first folder. Raises UsageError."""
    if name is not None:
        if not name.strip(". ") or Path(name).name != name:
            raise UsageError(f"--name {name!r} is no name of a folder: use letters, digits, - and _")
        return name
    first = Path(given[0]).resolve()
    return (first if first.is_dir() else first.parent).name or "campaign"


def recorded_settings(settings: Settings, options: argparse.Namespace, effects: Effects, device: Device) -> dict[str, str]:  # fmt: skip # noqa: E501
    """Return the settings that make results comparable, by the option that sets them."""
    plan = plan_of(options)(Plan())
    return {
        "--author": effects.author.name,
        "--device": device.name,
        "--baseline": ", ".join(sorted(settings.baselines)),
        "--target": effects.target.name if effects.target else _NONE,
        "--library": library_option(options.library) or _NONE,
        "--schedule": plan.schedule.value,
        "--plateau": str(plan.plateau_rounds),
        "--prompts": effects.library.own_digest[:16] or _NONE,
    }


def recorded_budgets(options: argparse.Namespace) -> dict[str, str]:
    """Return the limits of each problem and of the whole, by option."""
    given = vars(options)
    return {
        f"--{name.replace('_', '-')}": _NONE if given[name] is None else f"{given[name]:g}"
        for name in _BUDGETS
    }


def changed_limits(old: CampaignRecord, budgets: dict[str, str]) -> str:
    """Say in a sentence which limits are others than before; empty if none are."""
    changed = [
        f"{option} {value} (before: {old.budgets.get(option, _NONE)})"
        for option, value in budgets.items()
        if value != old.budgets.get(option, _NONE)
    ]
    return f"{old.name} goes on with other limits: {', '.join(changed)}" if changed else ""


def open_variant(
    variant: Variant, folder: Path, store: SqliteStore, new: CampaignRecord
) -> tuple[VariantRun, str]:
    """Open the campaign of a folder, or begin it; also return a sentence on limits that have changed.

    Raises UsageError if its other settings are not those of `new`, or the folder holds other sessions.
    """
    old = read_campaign(folder)
    if old is None:
        if store.names():
            raise UsageError(
                f"{folder / FILE_NAME} holds sessions of no campaign: give the campaign a --store of its own"
            )
        record, told = new, ""
        write_campaign(folder, new)
    else:
        _refuse_other_settings(old, new, folder)
        told = changed_limits(old, new.budgets)
        # The rest of the record stays that of the start.
        record = CampaignRecord(
            name=old.name, created_at=old.created_at, settings=old.settings, budgets=new.budgets,
            environment=old.environment, entries=old.entries,
        )  # fmt: skip
        if told:
            write_campaign(folder, record)
    run = VariantRun(
        variant=variant, store=store, record=record, keep=lambda kept: write_campaign(folder, kept)
    )
    return run, told


def _refuse_other_settings(old: CampaignRecord, new: CampaignRecord, folder: Path) -> None:
    changed = [
        f"{option} {old.settings.get(option, _NONE)}, now {value}"
        for option, value in new.settings.items()
        if value != old.settings.get(option, _NONE)
    ]
    if changed:
        raise UsageError(
            f"the campaign in {folder} was begun with {'; '.join(changed)}: results of both would not be "
            "comparable; give the same options, or another --store"
        )
