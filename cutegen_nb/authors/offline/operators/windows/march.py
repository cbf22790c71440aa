"""Plan of a march over slices: axes by their part in it, and which windows a slice belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.authors.offline.operators.windows.attributes import Window, WindowAxis


@dataclass(frozen=True, slots=True, kw_only=True)
class MarchPlan:
    """March of threads through an input whose slices lie along its slowest window axis."""

    march: WindowAxis
    """Windows along the march."""
    cross: WindowAxis
    """Windows across it: the slower axis of a slice."""
    along: WindowAxis
    """Windows along the rows of a slice."""
    staged: bool
    """True if slices are staged in shared memory."""
    pipelined: bool
    """True if one stage is filled while another is read."""

    @property
    def open(self) -> int:
        """Outputs along the march whose windows may hold one slice."""
        return (self.march.window - 1) * self.march.dilation // self.march.stride + 1

    @property
    def taps(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Pairs (tap, age of the output) of each slice of a step, up to the last slice that is read.

        Tap i of output o is slice o · stride + i · dilation; of an output that began `age` steps ago it is
        slice i · dilation - age · stride of the present step.
        """
        pairs = [
            (tap, *divmod(tap * self.march.dilation, self.march.stride)) for tap in range(self.march.window)
        ]
        slices = max(phase for _, _, phase in pairs) + 1
        return tuple(
            tuple((tap, age) for tap, age, phase in pairs if phase == number) for number in range(slices)
        )

    def constants(self, upper: str) -> dict[str, str]:
        """Constants of the kernel."""
        return {
            f"{upper}_OPEN": f"{self.open}  # outputs along the march that wait for more slices",
            f"{upper}_TAPS": f"{self.taps}  # (tap, age of its output) for each slice of a step",
            **({f"{upper}_STAGES": "2" if self.pipelined else "1"} if self.staged else {}),
        }

    def values(self, window: Window) -> dict[str, object]:
        """Values of the template."""
        return {
            "march": self.march,
            "staged": self.staged,
            "pipelined": self.pipelined,
            "slices": len(self.taps),
            "unrolled": self.cross.window * self.along.window <= _MOST_UNROLLED or window.kind == "conv",
            "most": _OUTPUTS[window.rank],
            "stage_bytes": STAGE_BYTES,
        }


STAGE_BYTES = 36 * 1024
"""Shared memory of one stage: with two of them, three CTAs share an SM of 228 KiB."""
_OUTPUTS = {1: 1024, 2: 256, 3: 1024}
"""Most outputs of a tile, by the number of spatial dimensions: one a thread where each has other weights."""
_MOST_UNROLLED = 64
"""Taps of a slice that are unrolled; more are a loop."""
_MOST_SLICES = 32
"""Slices of a step, which are unrolled."""
_MOST_WEIGHTS = 64
"""Weights that a thread keeps in registers."""
_MOST_OPEN = 16
"""Outputs along the march that a thread keeps in registers."""


def march_plan(window: Window, *, staged: bool, pipelined: bool) -> MarchPlan:
    """Choose the axis of the march: depth, height, or planes where windows have one dimension."""
    one = WindowAxis()
    depth, height, width = window.axes
    march, cross = {1: (one, one), 2: (height, one), 3: (depth, height)}[window.rank]
    return MarchPlan(march=march, cross=cross, along=width, staged=staged, pipelined=pipelined)


def fits_march(window: Window, dtype: str) -> bool:
    """Return whether registers and shared memory hold what the march of the simplest tile needs."""
    if window.adaptive:
        return False
    plan = march_plan(window, staged=True, pipelined=True)
    if window.kind == "conv" and window.taps > _MOST_WEIGHTS:
        return False
    # The least tile is eight outputs of one row, whose vectors begin on 16-byte boundaries.
    columns = 7 * plan.along.stride + plan.along.span + 14
    stage = len(plan.taps) * plan.cross.span * columns * (4 if dtype == "float32" else 2)
    return len(plan.taps) <= _MOST_SLICES and plan.open <= _MOST_OPEN and stage <= STAGE_BYTES
