"""HTML view of a candidate's measured times on a GPU."""

from __future__ import annotations

from markupsafe import Markup

from cutegen_nb.analysis.figures.latency import host_words, is_host_bound, method_note, method_words, spread
from cutegen_nb.analysis.figures.quantity import duration, interval, scaled, share
from cutegen_nb.analysis.hardware.roofline import Roofline
from cutegen_nb.analysis.tables.counts import CountTable
from cutegen_nb.core.timing import Timing
from cutegen_nb.report.html.counts import plain_table
from cutegen_nb.report.markup import Style


def render(timing: Timing, roof: Roofline, *, style: Style = Style.RECORD) -> Markup:
    """Return latency, spread, speed-of-light share and the paired comparison with each baseline."""
    body = [
        (
            "candidate",
            duration(timing.median_ms / 1e3),
            spread(timing),
            "–",
            share(roof.sol_fraction) if roof.sol_fraction is not None else "–",
        )
    ]
    for item in (*timing.baselines, *((timing.rival,) if timing.rival else ())):
        known = roof.floor_ms and item.median_ms
        floor_share = share(roof.floor_ms / item.median_ms) if known else "–"
        faster = interval(item.speedup, item.speedup_low, item.speedup_high)
        body.append((item.name, duration(item.median_ms / 1e3), "–", faster, floor_share))
    if timing.host_ms is not None:
        body.append(("host, queueing a call", duration(timing.host_ms / 1e3), "–", "–", "–"))
    columns = (
        ("What", False),
        ("Median", True),
        ("10th to 90th percentile", True),
        ("Candidate’s speedup (95 % interval)", True),
        ("Of speed of light", True),
    )
    count = len(timing.samples_ms)
    caption = f"Latency by {method_words(timing)}; L2 flushed before each call ({count} samples)"
    item = CountTable(title=caption, columns=columns, rows=tuple(body), note=note(timing))
    return plain_table(item, style)


def note(timing: Timing) -> str:
    """Return the conditions of a measurement in one line: warm cache, host, noise, clocks, compilation."""
    parts = [f"Copy bandwidth in the same process {scaled(timing.bandwidth_bytes_per_s, 'B/s')}"]
    if timing.warm_ms is not None:
        parts.append(f"with a warm L2 {duration(timing.warm_ms / 1e3)}")
    parts += [words for words in (method_note(timing), host_words(timing)) if words]
    if is_host_bound(timing):
        parts.append("calls in a row wait for the host")
    if timing.noise_fraction is not None:
        parts.append(f"a baseline differs from itself by up to {share(timing.noise_fraction)}")
    if timing.resolution_fraction > (timing.noise_fraction or 0.0):
        parts.append(f"two steps of the clock are {share(timing.resolution_fraction)}")
    if timing.clocks:
        before, after = timing.clocks
        parts.append(
            f"SM clock {before.sm_mhz} → {after.sm_mhz} MHz, {after.temperature_c} °C, {after.power_w:.0f} W"
        )
        slowed = sorted({*before.slowed_by, *after.slowed_by})
        parts.append(f"clocks held down by {', '.join(slowed)}" if slowed else "nothing held the clocks down")
    parts.append(f"compilation {duration(timing.compile_s)}")
    return "; ".join(parts) + "."
