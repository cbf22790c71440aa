"""Profiles of kernels as one HTML page and as text: each kernel for itself, never mixed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cutegen_nb.analysis.count_tables import CountTable, detail_tables, kernel_name, resources
from cutegen_nb.analysis.diagnose import Diagnosis
from cutegen_nb.analysis.line_heat import hottest_lines
from cutegen_nb.analysis.lines import of_file
from cutegen_nb.analysis.measured_tables import launches, reasons
from cutegen_nb.analysis.quantity import count, duration
from cutegen_nb.analysis.static_tables import compiled
from cutegen_nb.core.profile import LaunchProfile, Profile
from cutegen_nb.report import counts_view, line_view, rounds
from cutegen_nb.report.counts_text import table_text
from cutegen_nb.report.fitting import paragraph
from cutegen_nb.report.markup import Style, folded, safe, visible
from cutegen_nb.report.page import page


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSection:
    """One kernel of a profile, with what is said of it."""

    profile: Profile
    """Its one launch."""
    diagnosis: Diagnosis
    """What limits it."""
    sources: Mapping[str, str]
    """Text of the files its lines are of, where they could be read, by the path the compiler saw."""

    @property
    def launch(self) -> LaunchProfile:
        """The launch itself."""
        return self.profile.launches[0]


def text_of(profile: Profile, sections: Sequence[KernelSection], *, lines: bool) -> str:
    """For a terminal: where the figures come from, all launches, then each kernel with its diagnosis."""
    parts = [_origin(profile)]
    if profile.made_by:
        parts.append(table_text(launches(profile)))
    for section in sections:
        parts.append(_heading(section.launch))
        said = (visible(line) for line in section.diagnosis.text())
        parts.append("\n".join(part for line in said for part in paragraph(line, "  ", first="")))
        parts += [table_text(one) for one in _tables(section, lines=lines) if one.rows]
    return "\n\n".join(parts)


def page_of(title: str, profile: Profile, sections: Sequence[KernelSection]) -> str:
    """The whole page."""
    header = (
        f'<header><p class="kicker">Profile</p><h1>{safe(title)}</h1>'
        f'<p class="lead">{safe(_origin(profile))}</p></header>'
    )
    every = counts_view.plain_table(launches(profile), Style.PAGE) if profile.made_by else ""
    body = "".join(_section(one, is_open=number == 0) for number, one in enumerate(sections))
    footer = "<footer><p>Written by cutegen-nb profile.</p></footer>"
    return page(f"{title}: profile", f"{header}<main>{every}{body}</main>{footer}")


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
    """Why warps waited, what was counted, and what was compiled."""
    return (*reasons(profile), *detail_tables(profile), resources(profile), *compiled(profile))


def _section(section: KernelSection, *, is_open: bool) -> str:
    style = Style.PAGE
    profile = section.profile
    tables = _figures(profile)
    body = rounds.diagnosis(section.diagnosis, style=style)
    body += "".join(counts_view.plain_table(one, style) for one in tables)
    for file, source in section.sources.items():
        shown = line_view.render(of_file(profile, file), source, diagnosis=section.diagnosis, style=style)
        body += f"<h3>{safe(file.rpartition('/')[2])}, line by line</h3>{shown}"
    return folded(style, _heading(section.launch), body, is_open=is_open)
