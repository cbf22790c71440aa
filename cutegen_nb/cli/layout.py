"""`cutegen-nb layout`: a CuTe layout as a picture."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from cutegen_nb.analysis.layout_banks import element_bits
from cutegen_nb.cli.commands import PASSED, Answer
from cutegen_nb.cli.terminal import Terminal
from cutegen_nb.core.errors import StoreError, UsageError

SUMMARY = "draw a CuTe layout as SVG, with PNG beside it"
EXAMPLE = 'cutegen-nb layout "(8,64):(64,1)" --swizzle 3,3,3 --element f16 --banks -o tile.svg'


async def layout(options: argparse.Namespace, terminal: Terminal) -> Answer:  # noqa: ARG001 - one shape for all
    """Draw one layout into two files."""
    from cutegen_nb.report.layout_png import png  # noqa: PLC0415 - matplotlib only where something is drawn
    from cutegen_nb.report.layout_request import LayoutRequest, drawing  # noqa: PLC0415 - as above
    from cutegen_nb.report.layout_svg import svg  # noqa: PLC0415 - as above

    target = Path(options.output)
    if target.suffix.lower() != ".svg":
        raise UsageError(f"{options.output!r} does not end in .svg; the PNG is written beside it.")
    if not target.parent.is_dir():
        raise UsageError(f"The folder {target.parent} does not exist; create it or choose another.")
    if options.element:
        element_bits(options.element)  # a mistyped one is refused where it is not drawn too
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
        return Answer(status=PASSED, text=json.dumps(found, indent=2))
    said = f"{drawn.title}\n{drawn.description}\n".replace("\n\n", "\n")
    return Answer(status=PASSED, text=f"{said}{target}, {beside}")


def _write(contents: dict[Path, bytes]) -> None:
    for path, content in contents.items():
        try:
            path.write_bytes(content)
        except OSError as error:
            raise StoreError(
                f"{path} could not be written: {error.strerror}. Choose another folder or free some space."
            ) from error


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("layout", metavar="LAYOUT", help="as CuTe writes it: (8,(2,4)):(8,(1,2))")
    parser.add_argument("--swizzle", default="", metavar="B,M,S", help="swizzle of the index: 3,3,3")
    parser.add_argument(
        "--swizzle-bytes",
        action="store_true",
        help="the swizzle is of byte addresses, as the pointers of the DSL's shared tensors have it",
    )
    parser.add_argument("--element", default="", metavar="TYPE", help="type of an element: f16, bf16, f32 …")
    parser.add_argument("--banks", action="store_true", help="colour by bank of shared memory")
    parser.add_argument(
        "--tile", default="", metavar="TILE", help="LAYOUT is (thread, value) over this tile: (16,8)"
    )
    parser.add_argument(
        "--over", default="", metavar="TENSOR", help="layout in shared memory that these threads access"
    )
    parser.add_argument(
        "--access-bits", type=int, default=0, metavar="N", choices=(8, 16, 32, 64, 128),
        help="bits that a thread moves at once (default: one element)",
    )  # fmt: skip
    parser.add_argument("--dark", action="store_true", help="a dark PNG; the SVG follows its viewer")
    parser.add_argument("-o", "--output", metavar="FILE.svg", required=True, help="where to write it")
