"""Command that runs many problems."""

from __future__ import annotations

from cutegen_nb.app.arguments import (
    AUTHOR,
    BASELINE,
    DEFAULT_ROUNDS,
    DEVICE,
    JSON,
    LIBRARY,
    LIMITS,
    OUTPUT,
    ROUNDS,
    STORE,
    TARGET,
    TOTALS,
    argument,
)
from cutegen_nb.app.command import Command
from cutegen_nb.loop.campaign.variants import ABLATIONS
from cutegen_nb.wiring import CAMPAIGNS_FOLDER

_ABLATIONS = ", ".join(f"{name}={'|'.join(one.values)}" for name, one in ABLATIONS.items())

CAMPAIGN_COMMANDS: tuple[Command, ...] = (
    Command(
        name="campaign",
        summary="Refine many problems with one author, and say what came of them.",
        example="cutegen-nb campaign KernelBench/level1 --only 19,23-26 --rounds 4",
        arguments=(
            argument(
                "problems",
                nargs="+",
                metavar="FOLDER|FILE.py",
                help="a folder of problem files, such as KernelBench's, or the files",
            ),
            argument("--only", metavar="LIST", help="some of them by number or name: 19,23-26"),
            argument("--name", metavar="NAME", help="name of the campaign; the folder's unless given"),
            argument(
                "--again",
                action="store_true",
                help="try again what could not be used, was declined or failed",
            ),
            argument(
                "--ablate",
                action="append",
                default=[],
                metavar="NAME=VALUE",
                help=f"run every problem with one setting changed too, and compare in pairs: {_ABLATIONS}; "
                "may be given several times",
            ),
            LIBRARY,
            *AUTHOR,
            ROUNDS.but(
                default=DEFAULT_ROUNDS, help=f"rounds of a problem at most (default: {DEFAULT_ROUNDS})"
            ),
            *LIMITS,
            *TOTALS,
            DEVICE,
            TARGET,
            BASELINE,
            OUTPUT.but(
                required=False,
                metavar="FILE.html",
                help="where to write the page (default: campaign.html in the store's folder)",
            ),
            STORE.but(help=f"the campaign's own folder (default: {CAMPAIGNS_FOLDER}/NAME)"),
            JSON,
        ),
        everyday=True,
    ),
)
