"""`cutegen-nb campaign`: many problems with one author, resumable, with statistics."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cutegen_nb.analysis.campaign.problem_result import ProblemResult, label, result_of
from cutegen_nb.analysis.estimate.targets import EstimateTarget, target_of, with_figures
from cutegen_nb.app.budgets import budget_of, campaign_budget_of, plan_of
from cutegen_nb.app.campaign_output import campaign_json
from cutegen_nb.app.campaign_setup import (
    campaign_name,
    campaign_problems,
    open_variant,
    recorded_budgets,
    recorded_settings,
)
from cutegen_nb.cli.answer import FAULT, NONE_PASSED, PASSED, CommandResult
from cutegen_nb.cli.commands import report_beside, round_line
from cutegen_nb.cli.settings import settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import DamagedSession, StoreError, UsageError
from cutegen_nb.core.round import Round
from cutegen_nb.core.search.campaign import CampaignEntry, CampaignRecord, ProblemState
from cutegen_nb.core.session import Plan, Session
from cutegen_nb.loop.campaign.campaign import Campaign, CampaignEnding, CampaignRules
from cutegen_nb.loop.campaign.variant_run import CampaignProblem, VariantRun
from cutegen_nb.loop.campaign.variants import Variant, check_variants, parse_variant
from cutegen_nb.loop.effects import Effects
from cutegen_nb.report.html.campaign_page import CampaignPage, write_campaign_page
from cutegen_nb.report.html.page import check_target
from cutegen_nb.report.terminal.campaign import campaign_lines, compared_with
from cutegen_nb.wiring import (
    CAMPAIGNS_FOLDER,
    Settings,
    make_effects,
    make_evaluator,
    max_repairs,
    no_price_reason,
    open_store,
    slots_at_once,
    versions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """Results of a campaign, in the order of its problems."""

    record: CampaignRecord
    results: list[ProblemResult]
    variants: list[tuple[str, list[ProblemResult]]]
    ending: CampaignEnding | None
    device: Device
    target: EstimateTarget


@dataclass(slots=True, kw_only=True)
class _Progress:
    """Progress of a campaign at the terminal; writes the report of each session that is over."""

    terminal: Terminal
    problems: Sequence[CampaignProblem]
    folders: dict[str, Path] = field(default_factory=dict)
    """Folder of each variant, by its name."""

    def begun(self, item: CampaignProblem, variant: Variant) -> None:
        """Say which problem begins, and its place."""
        place = [one.name for one in self.problems].index(item.name) + 1
        named = f", {variant.name}" if variant.name else ""
        self.terminal.say(f"{label(item.file)} ({place} of {len(self.problems)}{named})")

    def round_finished(self, session: Session, item: Round) -> None:  # noqa: ARG002 - the observer's
        """Show a line for a stored round."""
        self.terminal.say(f"  {round_line(item)}")

    def ended(self, entry: CampaignEntry, run: VariantRun, session: Session | None) -> None:
        """Say what became of a problem; that a file cannot be used is said once, not for each variant."""
        if run.variant.name and entry.state is ProblemState.UNUSABLE:
            return
        state = "" if entry.state.is_regular else f"{entry.state.value}: "
        self.terminal.say(f"  {label(entry.file)}: {state}{entry.sentence}")
        if session is not None and session.rounds:
            report_beside(session, self.folders[run.variant.name] / f"{session.name}.html", self.terminal)


async def campaign(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Run the problems of a folder that are not over yet, and report on all of them."""
    problems, files = campaign_problems(options.problems, options.only, options.library)
    name = campaign_name(options.problems, options.name)
    settings = settings_of(options)
    settings = replace(settings, folder=options.store or CAMPAIGNS_FOLDER / name)
    variants = (Variant(), *(parse_variant(text) for text in dict.fromkeys(options.ablate)))
    check_variants(variants[1:], plan_of(options)(Plan()))
    page = _page_path(options.output, settings.folder)
    _announce(options, settings, terminal)
    outcome = await _run(problems, variants, settings, options, terminal, name)
    try:
        written = _write_page(outcome, problems, files, page, settings.folder)
    except StoreError as error:
        terminal.say(f"no page was written: {error}")
        written = None
    return _answer(outcome, options, terminal, written)


def _page_path(output: str | None, folder: Path) -> Path:
    if output is None:
        return folder / "campaign.html"
    if Path(output).suffix != ".html":
        message = f"-o {output!r} does not end in .html, the one form of the page"
        raise UsageError(message)
    return check_target(output, "campaign.html")


def _announce(options: argparse.Namespace, settings: Settings, terminal: Terminal) -> None:
    limited = options.dollars is not None or options.total_dollars is not None
    if limited and (why := no_price_reason(settings)):
        terminal.say(why)
    if options.epochs is not None and not options.population:
        terminal.say(
            f"--epochs {options.epochs}: a chain has none; --population N evolves several kernels in epochs"
        )
    of_prompts = [text for text in options.ablate if not text.startswith("schedule=")]
    if of_prompts and settings.author == "offline":
        terminal.say(f"the offline author reads no prompt: {', '.join(of_prompts)} changes nothing for it")


async def _run(  # noqa: PLR0913, PLR0917 - what the command has read
    problems: Sequence[CampaignProblem],
    variants: Sequence[Variant],
    settings: Settings,
    options: argparse.Namespace,
    terminal: Terminal,
    name: str,
) -> _Outcome:
    evaluator = make_evaluator(settings)
    progress = _Progress(terminal=terminal, problems=problems)
    try:
        effects = make_effects(settings, terminal, evaluator)
        device = with_figures(await evaluator.device(), effects.target)
        with contextlib.ExitStack() as stack:
            runs = []
            for variant in variants:
                folder = progress.folders[variant.name] = settings.folder / variant.name
                store = stack.enter_context(open_store(replace(settings, folder=folder)))
                new = _new_record(name, variant, settings, options, effects, device)
                run, told = open_variant(variant, folder, store, new)
                runs.append(run)
                if told and not variant.name:
                    terminal.say(told)
            rules = CampaignRules(
                budget=budget_of(options, options.rounds),
                total=campaign_budget_of(options),
                replan=plan_of(options),
                repairs=max_repairs(settings),
                workers=settings.workers,
                slots=functools.partial(slots_at_once, settings),
                again=options.again,
            )
            ending = await Campaign(runs=runs, effects=effects, rules=rules, observer=progress).run(problems)
            target = effects.target or target_of(device)
            results = [_results(problems, run, device, target) for run in runs]
    finally:
        await evaluator.close()
        terminal.clear()
    return _Outcome(
        record=runs[0].record,
        results=results[0],
        variants=[(run.variant.name, of) for run, of in zip(runs[1:], results[1:], strict=True)],
        ending=ending,
        device=device,
        target=target,
    )


def _new_record(  # noqa: PLR0913, PLR0917 - what a record holds
    name: str,
    variant: Variant,
    settings: Settings,
    options: argparse.Namespace,
    effects: Effects,
    device: Device,
) -> CampaignRecord:
    found = recorded_settings(settings, options, effects, device)
    return CampaignRecord(
        name=name,
        created_at=effects.clock.now(),
        settings=found | ({"--ablate": variant.name} if variant.name else {}),
        budgets=recorded_budgets(options),
        environment=versions(),
    )


def _results(
    problems: Sequence[CampaignProblem], run: VariantRun, device: Device, target: EstimateTarget
) -> list[ProblemResult]:
    found = []
    for item in problems:
        entry = run.entry_of(item)
        try:
            session = run.session_of(item, device.name)
        except DamagedSession as error:
            entry, session = _damaged(item, str(error)), None
        found.append(result_of(item.name, item.file, entry, session, target))
    return found


def _damaged(item: CampaignProblem, sentence: str) -> CampaignEntry:
    return CampaignEntry(
        name=item.name, file=item.file, digest=item.digest, state=ProblemState.FAILED, sentence=sentence
    )


def _write_page(
    outcome: _Outcome, problems: Sequence[CampaignProblem], files: int, page: Path, folder: Path
) -> str:
    write_campaign_page(
        CampaignPage(
            record=outcome.record,
            results=outcome.results,
            variants=outcome.variants,
            chosen=f"{len(problems)} of {files} files" if len(problems) < files else "",
            device=outcome.device,
            target=outcome.target.name,
            ending=outcome.ending.sentence if outcome.ending else "",
            folder=folder,
        ),
        page,
    )
    return str(page)


def _answer(
    outcome: _Outcome, options: argparse.Namespace, terminal: Terminal, written: str | None
) -> CommandResult:
    ending = outcome.ending
    status = PASSED if any(item.correct for item in outcome.results) else NONE_PASSED
    go_on = shlex.join(["cutegen-nb", *options.typed])
    if ending is not None:
        status = FAULT if ending.is_fault else status
        # After a spent budget the same command would stop again: the sentence names the option to raise.
        next_step = f"; `{go_on}` goes on" if ending.is_fault else ""
        terminal.say(
            f"the campaign stopped here: {ending.sentence.rstrip('.')}. What is finished is kept{next_step}"
        )
    if options.json:
        compared = compared_with(outcome.results, outcome.variants)
        found = campaign_json(
            outcome.record,
            outcome.results,
            [(one, of) for one, (_, of) in zip(compared, outcome.variants, strict=True)],
        )
        stopped = {"stopped": ending.sentence if ending else None, "report": written}
        return CommandResult(status=status, text=json.dumps(found | stopped, indent=2))
    lines = campaign_lines(outcome.results, outcome.variants)
    return CommandResult(status=status, text="\n".join([*lines, "", f"report: {written or 'none'}"]))
