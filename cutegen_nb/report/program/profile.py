"""Report of a profile as an HTML page and as text, with a separate section for each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cutegen_nb.analysis.bottleneck.diagnose import Diagnosis
from cutegen_nb.analysis.figures.quantity import count, duration
from cutegen_nb.analysis.source.lines import of_file
from cutegen_nb.analysis.tables.compiled_code import compiled
from cutegen_nb.analysis.tables.counts import CountTable, detail_tables, kernel_name, resources
from cutegen_nb.analysis.tables.line_heat import hottest_lines
from cutegen_nb.analysis.tables.measured import launches, reasons
from cutegen_nb.core.profile import LaunchProfile, Profile
from cutegen_nb.report.html import counts, diagnosis
from cutegen_nb.report.html import lines as line_view
from cutegen_nb.report.markup import Style, fill, visible
from cutegen_nb.report.terminal.counts import table_text
from cutegen_nb.report.terminal.fitting import paragraph


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSection:
    """One kernel of a profile with its diagnosis."""

    profile: Profile
    """Profile of the kernel's one launch."""
    diagnosis: Diagnosis
    """Diagnosis of the kernel."""
    sources: Mapping[str, str]
    """Text of the kernel's source files that could be read, by the path that the compiler saw."""

    @property
    def launch(self) -> LaunchProfile:
        """The kernel's launch."""
        return self.profile.launches[0]


def text_of(profile: Profile, sections: Sequence[KernelSection], *, lines: bool) -> str:
    """Format the profile for a terminal: source of the figures, all launches, then each kernel."""
    parts = [_origin(profile)]
    if profile.made_by:
        parts.append(table_text(launches(profile)))
    for section in sections:
        parts.append(_heading(section.launch))
        said = (visible(line) for line in section.diagnosis.text())
        parts.append("\n".join(part for line in said for part in paragraph(line, "  ", first="")))
        parts += [table_text(one) for one in _tables(section, lines=lines) if one.rows]
    return "\n\n".join(parts)


def page_of(title: str, profile: Profile, sections: Sequence[KernelSection]) -> Markup:
    """Return the whole HTML page."""
    return fill(
        "profile_page",
        Style.PAGE,
        title=title,
        origin=_origin(profile),
        launches=counts.plain_table(launches(profile), Style.PAGE) if profile.made_by else "",
        sections=[(_heading(one.launch), _body(one), _listings(one)) for one in sections],
    )


def _origin(profile: Profile) -> str:
    number = len(profile.launches)
    said = f"{count(number)} {'launch' if number == 1 else 'launches'}"
    return f"{said}, {profile.made_by or f'{profile.source.value} for {profile.device}'}"


def _heading(launch: LaunchProfile) -> str:
    took = launch.duration_s
    extent = f"grid {'×'.join(map(str, launch.grid))}, block {'×'.join(map(str, launch.block))}"
    return f"{visible(kernel_name(launch))}: {extent}" + (f", {duration(took)}" if took is not None else "")


def _tables(section: KernelSection, *, lines: bool) -> tuple[CountTable, ...]:
    source = next(iter(section.sources.values()), "")
    file = next(iter(section.sources), "")
    own = of_file(section.profile, file) if file else section.profile
    listed = (hottest_lines(own, source, most=10_000 if lines else 10),) if source else ()
    return (*_figures(section.profile), *listed)


def _figures(profile: Profile) -> tuple[CountTable, ...]:
    """Return the tables of warp stalls, counts and compiled code."""
    return (*reasons(profile), *detail_tables(profile), resources(profile), *compiled(profile))


def _body(section: KernelSection) -> Markup:
    tables = counts.plain_tables(_figures(section.profile), Style.PAGE)
    return diagnosis.render(section.diagnosis, style=Style.PAGE) + tables


def _listings(section: KernelSection) -> list[tuple[str, Markup]]:
    """Return each source file with the cost of its lines."""
    found = []
    for file, source in section.sources.items():
        own = of_file(section.profile, file)
        shown = line_view.render(own, source, diagnosis=section.diagnosis, style=Style.PAGE)
        found.append((file.rpartition("/")[2], shown))
    return found
