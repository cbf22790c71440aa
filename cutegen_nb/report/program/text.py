"""Text report of a simulated program: launches, findings, the most costly lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from cutegen_nb.analysis.figures.quantity import count, scaled, times
from cutegen_nb.analysis.tables.compiled_code_text import code_text
from cutegen_nb.analysis.tables.counts import kernel_name, resources
from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.profile import Counters
from cutegen_nb.core.simulation import Ending, Launches, ProgramRun
from cutegen_nb.report.markup import visible
from cutegen_nb.report.terminal.counts import table_text
from cutegen_nb.report.terminal.fitting import paragraph, table_lines

_LINES_SHOWN = 12
"""Most source lines in the table of counts."""
_LAUNCHES_SHOWN = 40
"""Most kinds of launches in the table."""
_SOURCE_WIDTH = 56
"""Most characters of a source line in the table."""
_REPEATED = 10
"""Number of launches of one kind from which the program is probably timing them."""

NO_TIMES = (
    "Simulated counts: no kernel was timed. What the program itself prints as a time, a bandwidth, a rate or "
    "a speedup is not one: times are not simulated, and between CUDA events the simulator answers 999999."
)
"""Note in every report that simulated figures are no times."""


def text(run: ProgramRun) -> str:
    """Format the report for a terminal; there is no newline at the end."""
    given = resources(run.profile)
    parts = [
        *(part for line in heading(run).splitlines() for part in paragraph(line)),
        *_section(_launch_rows(run)),
        *_section([table_text(given)] if given.rows else ()),
        *_section(part for line in code_text(run.profile) for part in paragraph(visible(line))),
        *_findings(run), *_section(_line_rows(run)),
    ]  # fmt: skip
    said = (line for item in notes(run) for line in paragraph(visible(item), "  ", first="note: "))
    return "\n".join([*parts, *said])


def heading(run: ProgramRun) -> str:
    """Format the program, its arguments, the architecture and the result."""
    name = visible(" ".join([PurePath(run.script).name, *run.arguments]))
    return f"simulate {name} · {run.architecture} · simulated counts\n{visible(outcome(run))}"


def outcome(run: ProgramRun) -> str:
    """Describe the program's end and its launches in a sentence or two."""
    launched = _launched(run)
    if run.ending is Ending.FINISHED:
        return f"The program finished. {launched}"
    return f"{run.sentence} {launched}".strip()


def _launched(run: ProgramRun) -> str:
    if not run.launch_count:
        if run.findings or run.not_simulated:
            return ""
        # A program that ended halfway may have been in the middle of a kernel.
        through = run.ending in {Ending.FINISHED, Ending.EXITED}
        return "No kernel was launched." if through else "No kernel launch came to its end."
    whole = "in full" if not run.sampled else "in samples of their CTAs"
    words = "1 launch was" if run.launch_count == 1 else f"{count(run.launch_count)} launches were"
    found = len(run.findings)
    seen = "no finding" if not found else "1 finding" if found == 1 else f"{count(found)} findings"
    return f"{words} executed {whole} and checked: {seen}."


def notes(run: ProgramRun) -> tuple[str, ...]:
    """Return the remarks needed to read the figures."""
    said = [run.not_simulated] if run.not_simulated else []
    if run.sampled:
        parts = ", ".join(
            f"{count(item.profile.ctas_run or 0)} of {count(ctas(item))} CTAs of {short_name(item)}"
            for item in run.launches
            if item.profile.ctas_run is not None
        )
        said.append(
            f"A sample ran ({parts}): the rest of each result was never written, so that the program's own "
            "check of results may fail, and counts are those of the sample."
        )
    most = max((item.times for item in run.launches), default=0)
    if most >= _REPEATED:
        said.append(
            f"A kernel was launched {count(most)} times, as programs do to time it; fewer repetitions "
            "(an option such as --iterations 1, where the program has one) give the same counts sooner."
        )
    return (*said, NO_TIMES)


def ctas(item: Launches) -> int:
    """Return the number of CTAs in the grid."""
    x, y, z = item.profile.grid
    return x * y * z


def short_name(item: Launches) -> str:
    """Return the kernel's name as the program writes it."""
    return kernel_name(item.profile).removeprefix("kernel_cutlass_")


def _section(lines: Iterable[str]) -> Iterator[str]:
    made = list(lines)
    if made:
        yield ""
        yield from made


def _launch_rows(run: ProgramRun) -> Sequence[str]:
    if not run.launches:
        return ()
    counted = ("sectors", "÷ ideal", "wavefronts", "warp instr.")
    header = ("launches", "kernel", "grid", "block", "smem", *counted)
    body = [launch_row(item) for item in run.launches[:_LAUNCHES_SHOWN]]
    left = len(run.launches) - _LAUNCHES_SHOWN
    more = [f"… and {left} more kinds of launch (all of them in --json and --html)"] if left > 0 else []
    return [*table_lines([header, *body], right={0, 4, 5, 6, 7, 8}, rule=False), *more]


def launch_row(item: Launches) -> tuple[str, ...]:
    """Return one kind of launch as a row: count, kernel, extents, shared memory and counters."""
    profile, counters = item.profile, item.profile.counters
    sample = f" ({count(profile.ctas_run)} CTAs ran)" if profile.ctas_run is not None else ""
    return (
        f"{count(item.times)} ×",
        short_name(item),
        f"{extent(profile.grid)}{sample}",
        extent(profile.block),
        scaled(profile.dynamic_smem_bytes + profile.static_smem_bytes, "B"),
        count(counters.gmem_sectors),
        ratio(counters.gmem_sectors, counters.gmem_ideal_sectors),
        count(counters.smem_wavefronts),
        count(counters.warp_instructions),
    )


def extent(size: tuple[int, int, int]) -> str:
    """Format an extent: ``128 × 2``; trailing ones are left out."""
    x, y, z = size
    kept = (x, y, z) if z != 1 else (x, y) if y != 1 else (x,)
    return " × ".join(count(one) for one in kept)


def ratio(value: int, ideal: int) -> str:
    """Format a ratio: ``1.00×``; a dash if the ideal is 0."""
    return times(value / ideal) if ideal else "–"


def _findings(run: ProgramRun) -> list[str]:
    lines: list[str] = []
    for item in run.findings:
        weight = "FINDING" if item.severity is Severity.DECIDES else "flag"
        lines += ["", f"{weight} {visible(place(item) + item.kind)}", f"  {visible(item.message)}"]
        lines += [f"  {row}" for row in _excerpt(run, item)]
    return lines


def place(item: Finding) -> str:
    """Format the place of a finding: ``file.py:12: ``; empty for a finding without a line."""
    return f"{PurePath(item.file).name}:{item.line}: " if item.line else ""


def _excerpt(run: ProgramRun, item: Finding) -> list[str]:
    source = run.sources.get(item.file, "").splitlines()
    if not 1 <= item.line <= len(source):
        return []
    return [f"{item.line:>6} │ {visible(source[item.line - 1])}"]


def by_place(run: ProgramRun) -> dict[tuple[str, int], Counters]:
    """Return the counts of the program's own lines, summed over all launches."""
    found: dict[tuple[str, int], Counters] = {}
    for item in run.launches:
        for line in item.profile.lines:
            if line.line > 0 and line.file in run.sources:
                key = (line.file, line.line)
                found[key] = found.get(key, Counters()) + line.counters
    return found


def _line_rows(run: ProgramRun) -> Sequence[str]:
    found = by_place(run)
    if not found:
        return ()
    ordered = sorted(
        found.items(),
        key=lambda item: (item[1].gmem_sectors, item[1].smem_wavefronts, item[1].warp_instructions),
        reverse=True,
    )[:_LINES_SHOWN]
    header = ("line", "sectors", "÷ ideal", "wavefronts", "÷ ideal", "warp instr.", "source")
    body = [
        (
            f"{PurePath(file).name}:{line}",
            count(item.gmem_sectors),
            ratio(item.gmem_sectors, item.gmem_ideal_sectors),
            count(item.smem_wavefronts),
            ratio(item.smem_wavefronts, item.smem_ideal_wavefronts),
            count(item.warp_instructions),
            _code(run, file, line),
        )
        for (file, line), item in ordered
    ]
    left = len(found) - len(ordered)
    more = [f"… and {left} more lines with counts (all of them in --json and --html)"] if left > 0 else []
    return [*table_lines([header, *body], right={1, 2, 3, 4, 5}, rule=False), *more]


def _code(run: ProgramRun, file: str, line: int) -> str:
    source = run.sources[file].splitlines()
    words = visible(source[line - 1].strip()) if line <= len(source) else ""
    return words if len(words) <= _SOURCE_WIDTH else f"{words[: _SOURCE_WIDTH - 1]}…"
