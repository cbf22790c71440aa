"""``cutegen-nb profile``: counters of a kernel, measured or simulated, or of an Nsight Compute report."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis, diagnose, diagnose_launches
from cutegen_nb.analysis.estimate.targets import with_figures
from cutegen_nb.analysis.hardware import devices
from cutegen_nb.analysis.problem.problem_text import read_problem
from cutegen_nb.app.output import evaluation_json
from cutegen_nb.cli.answer import NONE_PASSED, PASSED, CommandResult
from cutegen_nb.cli.evaluated import evaluated_text
from cutegen_nb.cli.settings import read_source, settings_of
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import FILE_NAME, Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.profile import LaunchProfile, Profile
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.evaluator.tools.ncu import Detail
from cutegen_nb.evaluator.tools.ncu_import import import_report
from cutegen_nb.evaluator.tools.ncu_profile import profile_of
from cutegen_nb.report.terminal.verdict import VerdictSetting
from cutegen_nb.wiring import make_evaluator

if TYPE_CHECKING:
    from cutegen_nb.report.program.profile import KernelSection

_REPORT = ".ncu-rep"
"""Suffix of a report of Nsight Compute."""


async def profile(options: argparse.Namespace, terminal: Terminal) -> CommandResult:
    """Profile a candidate, or read a report of Nsight Compute; ``--html`` also writes a page."""
    from cutegen_nb.report.html.page import check_target, write_whole  # noqa: PLC0415 - what draws is slow to import
    from cutegen_nb.report.program.profile import page_of  # noqa: PLC0415 - as above

    target = check_target(options.html, "profile.html") if options.html else None
    if options.file.endswith(_REPORT):
        if options.kernel:
            message = f"a report of Nsight Compute stands alone; {options.kernel} does not go with it"
            raise UsageError(message)
        found, sections = _imported(options)
        title = Path(options.file).name
    else:
        if not options.kernel:
            message = f"profile needs PROBLEM.py and KERNEL.py, or one file that ends in {_REPORT}"
            raise UsageError(message)
        evaluated = await _evaluated(options, terminal)
        if isinstance(evaluated, CommandResult):
            return evaluated
        found, sections = evaluated
        title = Path(options.kernel).name
    if target is not None:
        write_whole(page_of(title, found, sections), target)
    return CommandResult(status=PASSED, text=_answer(options, found, sections))


def _answer(options: argparse.Namespace, found: Profile, sections: tuple[KernelSection, ...]) -> str:
    if options.json:
        told = {
            "source": found.source.value,
            "device": found.device,
            "made_by": found.made_by,
            "kernels": [
                {**_plain(one.launch, lines=options.lines), "diagnosis": encode(one.diagnosis)}
                for one in sections
            ],
            "html": options.html,
        }
        return json.dumps(told, indent=2)
    from cutegen_nb.report.program.profile import text_of  # noqa: PLC0415 - slow to import

    said = text_of(found, sections, lines=options.lines)
    return f"{said}\n\npage: {options.html}" if options.html else said


def _plain(launch: LaunchProfile, *, lines: bool) -> dict[str, object]:
    told = dict(encode(launch))
    if not lines:
        told.pop("lines", None)
    return told


# -- a candidate ---------------------------------------------------------------------------------------------
async def _evaluated(
    options: argparse.Namespace, terminal: Terminal
) -> CommandResult | tuple[Profile, tuple[KernelSection, ...]]:
    """Return the counters of a candidate that passes, else the answer that reports its evaluation."""
    problem = read_problem(options.file, library=options.library)
    candidate = Candidate(source=read_source(options.kernel), author="person")
    settings = settings_of(options)
    evaluator = make_evaluator(settings)
    try:
        facts = await evaluator.facts(problem, terminal.progress)
        device = with_figures(await evaluator.device(), settings.estimate_target)
        found = await evaluator.evaluate(problem, candidate, terminal.progress)
        if found.passed and isinstance(evaluator, KernelEvaluator) and device.kind is DeviceKind.GPU:
            detail = Detail(options.detail)
            counted = await evaluator.count(problem, candidate, terminal.progress, detail)
            found = replace(found, profile=counted)
    finally:
        await evaluator.close()
        terminal.clear()
    if found.profile is None or not found.passed:
        if options.json:
            return CommandResult(
                status=NONE_PASSED, text=json.dumps(evaluation_json(found, facts.admission), indent=2)
            )
        setting = VerdictSetting(source=candidate.source, facts=facts, device=device)
        command = f"cutegen-nb evaluate {shlex.quote(options.file)} {shlex.quote(options.kernel)} --verbose"
        more = f"`{command}` lists every check"
        return CommandResult(status=NONE_PASSED, text=evaluated_text(found, candidate, setting, more=more))
    from cutegen_nb.report.program.profile import KernelSection  # noqa: PLC0415 - slow to import

    sections = tuple(
        KernelSection(
            profile=one,
            diagnosis=diagnose(facts, replace(found, profile=one), device),
            sources=_candidate_sources(one.launches[0], candidate.source),
        )
        for one in _profile_per_launch(found.profile)
    )
    return found.profile, sections


def _candidate_sources(launch: LaunchProfile, source: str) -> dict[str, str]:
    """Map the path that the compiler saw to the candidate's source; files of the DSL are left out."""
    files = {line.file for line in launch.lines if PurePosixPath(line.file).name == FILE_NAME}
    return dict.fromkeys(sorted(files)[:1], source)


# -- a report ------------------------------------------------------------------------------------------------
def _imported(options: argparse.Namespace) -> tuple[Profile, tuple[KernelSection, ...]]:
    found = profile_of(import_report(Path(options.file)))
    if options.only:
        found = replace(found, launches=tuple(_matching(found, options.only)))
        if not found.launches:
            raise UsageError(f"No kernel of {options.file} has a name that matches {options.only!r}.")
    if not found.launches:
        raise UsageError(f"{options.file} holds no kernel: nothing was profiled when it was written.")
    given = {"": read_source(options.source)} if options.source else {}
    from cutegen_nb.report.program.profile import KernelSection  # noqa: PLC0415 - slow to import

    device = _device_of(found)
    sections = tuple(
        KernelSection(
            profile=one,
            diagnosis=_diagnosed(one, device),
            sources=_sources(one.launches[0], given, options.source or ""),
        )
        for one in _profile_per_launch(found)
    )
    return found, sections


def _matching(found: Profile, pattern: str) -> list[LaunchProfile]:
    try:
        return [one for one in found.launches if re.search(pattern, one.kernel)]
    except re.error as problem:
        raise UsageError(f"--only {pattern!r} is no regular expression: {problem}.") from problem


def _diagnosed(one: Profile, device: Device) -> Diagnosis:
    """Diagnose a kernel without its problem, so without any figure that rests on the problem."""
    return diagnose_launches(one, device)


def _profile_per_launch(found: Profile) -> list[Profile]:
    return [replace(found, launches=(one,)) for one in found.launches]


def _sources(launch: LaunchProfile, given: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the source file with the most executed instructions, by its path.

    The text is the given one if the file names agree; without a given text the path is read from disk.
    """
    executed: dict[str, int] = {}
    for line in launch.lines:
        if line.file:
            executed[line.file] = executed.get(line.file, 0) + line.counters.warp_instructions
    for file in sorted(executed, key=lambda one: -executed[one]):
        if given and PurePosixPath(file).name == Path(name).name:
            return {file: given[""]}
        if not given and Path(file).is_file():
            return {file: Path(file).read_text(encoding="utf-8", errors="replace")}
    return {}


def _device_of(found: Profile) -> Device:
    """Return the device that a report names, with the figures of its data sheet; 0 where unknown."""
    known = devices.find_data_sheet(found.device)
    return Device(
        kind=DeviceKind.GPU,
        name=found.device,
        architecture=known.architecture if known else "",
        bandwidth_bytes_per_s=known.bandwidth_bytes_per_s if known else 0.0,
        peak_flops=dict(known.peak_flops) if known else {},
        source=known.source if known else f"no data sheet on record for {found.device!r}",
        sm_count=known.sm_count if known else 0,
        l2_bytes=known.l2_bytes if known else 0,
        clock_hz=known.clock_hz if known else 0.0,
    )
