"""`cutegen-nb layout`: drawing of a CuTe layout as SVG and PNG."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cutegen_nb.analysis.layout.banks import element_bits
from cutegen_nb.cli.answer import PASSED, CommandResult
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.errors import StoreError, UsageError


async def layout(options: argparse.Namespace, terminal: Terminal) -> CommandResult:  # noqa: ARG001 - one shape for all
    """Draw one layout as SVG into ``-o``, and as PNG beside it."""
    from cutegen_nb.report.layout.png import png  # noqa: PLC0415 - matplotlib only where something is drawn
    from cutegen_nb.report.layout.request import LayoutRequest, drawing  # noqa: PLC0415 - as above
    from cutegen_nb.report.layout.svg import svg  # noqa: PLC0415 - as above

    target = Path(options.output)
    if target.suffix.lower() != ".svg":
        raise UsageError(f"{options.output!r} does not end in .svg; the PNG is written beside it.")
    if not target.parent.is_dir():
        raise UsageError(f"The folder {target.parent} does not exist; create it or choose another.")
    if options.element:
        element_bits(options.element)  # refuses a mistyped type even where the drawing does not need it
    drawn = drawing(
        LayoutRequest(
            text=options.layout,
            swizzle=options.swizzle,
            on_bytes=options.swizzle_bytes,
            element=options.element,
            banks=options.banks,
            tile=options.tile,
            access_bits=options.access_bits,
            over=options.over,
        )
    )
    beside = target.with_suffix(".png")
    _write({target: svg(drawn, own_colors=True).encode(), beside: png(drawn, dark=options.dark)})
    if options.json:
        found = {
            "title": drawn.title,
            "description": drawn.description,
            "svg": str(target),
            "png": str(beside),
        }
        return CommandResult(status=PASSED, text=json.dumps(found, indent=2))
    said = f"{drawn.title}\n{drawn.description}\n".replace("\n\n", "\n")
    return CommandResult(status=PASSED, text=f"{said}{target}, {beside}")


def _write(contents: dict[Path, bytes]) -> None:
    for path, content in contents.items():
        try:
            path.write_bytes(content)
        except OSError as error:
            raise StoreError(
                f"{path} could not be written: {error.strerror}. Choose another folder or free some space."
            ) from error
