"""Pattern of wrong values as text: number of elements, location by tile, usual cause."""

from __future__ import annotations

from cutegen_nb.core.wrong_values import WrongValues


def wrong_text(wrong: WrongValues | None) -> str:
    """Format the pattern as list lines after an output's sentence; empty without a pattern."""
    return "".join(f"\n  - {line}" for line in wrong_lines(wrong))


def wrong_lines(wrong: WrongValues | None) -> tuple[str, ...]:
    """Number of wrong elements, worst tiles and usual cause, as prompts and reports both show them."""
    if wrong is None:
        return ()
    lines = []
    if wrong.element_count:
        said = f"{wrong.bad_count:,} of {wrong.element_count:,} elements wrong"
        said += f", {wrong.nan_count:,} of them NaN" if wrong.nan_count else ""
        said += f", {wrong.unwritten_count:,} never written" if wrong.unwritten_count else ""
        lines.append(said)
    if wrong.tiles:
        shape = "×".join(map(str, wrong.tile_shape))
        worst = ", ".join(f"{_tile(one.tile)} {one.bad_fraction:.0%}" for one in wrong.tiles)
        held = f"{wrong.bad_tiles} of {wrong.tile_count} hold wrong elements"
        lines.append(f"by tiles of {shape}: {held}; worst: {worst}")
    if wrong.hint:
        lines.append(f"usual cause: {wrong.hint}")
    return tuple(lines)


def _tile(tile: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, tile))})"
