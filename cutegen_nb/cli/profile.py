"""``cutegen-nb profile``: counters of a kernel, measured or simulated, or of a report of Nsight Compute."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from cutegen_nb.analysis import devices
from cutegen_nb.analysis.diagnose import Diagnosis, diagnose, diagnose_launches
from cutegen_nb.analysis.problem_text import read_problem
from cutegen_nb.cli.commands import NONE_PASSED, PASSED, Answer, read_source, settings_of
from cutegen_nb.cli.evaluated import evaluated_text
from cutegen_nb.cli.output import evaluation_json
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.candidate import FILE_NAME, Candidate
from cutegen_nb.core.codec import encode
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.profile import LaunchProfile, Profile
from cutegen_nb.gpu.evaluator import KernelEvaluator
from cutegen_nb.gpu.nsight import Detail
from cutegen_nb.gpu.nsight_import import import_report
from cutegen_nb.gpu.nsight_profile import profile_of
from cutegen_nb.wiring import make_evaluator

if TYPE_CHECKING:
    from cutegen_nb.report.profile_page import KernelSection

SUMMARY = "count what a kernel does, on a GPU or simulated, or read a report of Nsight Compute"
EXAMPLE = "cutegen-nb profile relu.py my_relu.py --html relu.html; cutegen-nb profile others.ncu-rep"
_REPORT = ".ncu-rep"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "file", metavar="FILE", help=f"a report of Nsight Compute ({_REPORT}), or PROBLEM.py, then KERNEL.py"
    )
    parser.add_argument("kernel", nargs="?", metavar="KERNEL.py", help="a file with ModelNew")
    parser.add_argument(
        "--detail",
        choices=[one.value for one in Detail],
        default=Detail.TUNING.value,
        help="on a GPU: traffic and units only, or stalls and every line too (default: tuning)",
    )
    parser.add_argument("--only", metavar="REGEX", help="of a report: kernels whose name matches")
    parser.add_argument("--source", metavar="FILE.py", help="of a report: the source its lines are of")
    parser.add_argument("--html", metavar="OUT.html", help="write a page with the source line by line")
    parser.add_argument("--lines", action="store_true", help="list every line that has counts")


async def profile(options: argparse.Namespace, terminal: Terminal) -> Answer:
    """Profile a candidate, or read a report."""
    from cutegen_nb.report.page import check_target, write_whole  # noqa: PLC0415 - what draws is slow to import
    from cutegen_nb.report.profile_page import page_of  # noqa: PLC0415 - as above

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
        if isinstance(evaluated, Answer):
            return evaluated
        found, sections = evaluated
        title = Path(options.kernel).name
    if target is not None:
        write_whole(page_of(title, found, sections), target)
    return Answer(status=PASSED, text=_answer(options, found, sections))


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
    from cutegen_nb.report.profile_page import text_of  # noqa: PLC0415 - slow to import

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
) -> Answer | tuple[Profile, tuple[KernelSection, ...]]:
    """The counters of a candidate that passes; the evaluation as an answer where it does not."""
    problem = read_problem(options.file)
    candidate = Candidate(source=read_source(options.kernel), author="person")
    evaluator = make_evaluator(settings_of(options))
    try:
        facts = await evaluator.facts(problem, terminal.progress)
        device = await evaluator.device()
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
            return Answer(
                status=NONE_PASSED, text=json.dumps(evaluation_json(found, facts.admission), indent=2)
            )
        return Answer(status=NONE_PASSED, text=evaluated_text(found, candidate, facts.admission))
    from cutegen_nb.report.profile_page import KernelSection  # noqa: PLC0415 - slow to import

    sections = tuple(
        KernelSection(
            profile=one,
            diagnosis=diagnose(facts, replace(found, profile=one), device),
            sources=_own(one.launches[0], candidate.source),
        )
        for one in _apart(found.profile)
    )
    return found.profile, sections


def _own(launch: LaunchProfile, source: str) -> dict[str, str]:
    """The candidate's text under the path that the compiler saw; the DSL's own files are not shown."""
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
    from cutegen_nb.report.profile_page import KernelSection  # noqa: PLC0415 - slow to import

    device = _device_of(found)
    sections = tuple(
        KernelSection(
            profile=one,
            diagnosis=_diagnosed(one, device),
            sources=_sources(one.launches[0], given, options.source or ""),
        )
        for one in _apart(found)
    )
    return found, sections


def _matching(found: Profile, pattern: str) -> list[LaunchProfile]:
    try:
        return [one for one in found.launches if re.search(pattern, one.kernel)]
    except re.error as problem:
        raise UsageError(f"--only {pattern!r} is no regular expression: {problem}.") from problem


def _diagnosed(one: Profile, device: Device) -> Diagnosis:
    """Nobody says what problem a foreign kernel solves; what rests on that is left out."""
    return diagnose_launches(one, device)


def _apart(found: Profile) -> list[Profile]:
    return [replace(found, launches=(one,)) for one in found.launches]


def _sources(launch: LaunchProfile, given: Mapping[str, str], name: str) -> dict[str, str]:
    """The file with most instructions, as given, or as it lies where it was compiled."""
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
    """The device that a report names, with what its data sheet states."""
    known = devices.sheet(found.device)
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
