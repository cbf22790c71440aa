"""Commands that refine a problem, decide at gates, and read what is stored."""

from __future__ import annotations

from cutegen_nb.app.arguments import (
    AUTHOR,
    BASELINE,
    DEFAULT_ROUNDS,
    DEVICE,
    FAILURE_REQUESTS,
    JSON,
    LIBRARY,
    LIMITS,
    NO_HISTORY,
    OUTPUT,
    POLICY,
    PROBLEM,
    PROMPTS,
    RAY,
    REQUESTS,
    ROUNDS,
    SESSION,
    STORE,
    STRICT,
    TARGET,
    TIMEOUT,
    VERBOSE,
    WORKERS,
    argument,
)
from cutegen_nb.app.command import Command

_, _MODEL, _BASE_URL, _ = AUTHOR
_ROUNDS = ROUNDS.but(
    help=f"rounds at most (default: {DEFAULT_ROUNDS}; in a population as many as its epochs need)"
)
_POLICY = POLICY.but(
    default="auto", help="who decides: auto by the figures, or ask at the terminal (default: auto)"
)
_REFINING = (
    *AUTHOR,
    _ROUNDS,
    _POLICY,
    *LIMITS,
    DEVICE,
    WORKERS,
    RAY,
    TARGET,
    BASELINE,
    NO_HISTORY,
    STORE,
    VERBOSE,
    JSON,
)
"""Options of the commands that run rounds at a terminal."""
_ASKED = POLICY.but(help="who decides: ask you, or auto (default: ask where somebody can answer)")
_MAGIC_REFINING = (
    *AUTHOR,
    DEVICE,
    TARGET,
    ROUNDS.but(
        help=f"rounds at most (default: {DEFAULT_ROUNDS}; in a population as many as its epochs need; for a "
        "stored session as many as it had)"
    ),
    _ASKED,
    STORE,
    BASELINE,
    STRICT,
    NO_HISTORY,
    *LIMITS,
)
"""Options of the magics that run rounds."""
NAME = argument("--name", help="the session (default: the one started last)")
"""Option of the magics that act on a session of the kernel."""
_RUNNING_SESSION = argument(
    "session", nargs="?", metavar="NAME", help="the session (default: the one started last)"
)
_ANY_SESSION = _RUNNING_SESSION.but(
    help="the session (default: the one started last, else the newest stored)"
)
_SAME_NAME = argument("--name", dest="named", metavar="NAME", help="the same as NAME alone")
_SESSIONS_PAGE = argument(
    "--html",
    metavar="FILE",
    help="write all sessions as one page that sorts and filters, with a gallery of the finished kernels",
)
_RESUMING = (
    SESSION.but(nargs="?", help="its name (default: the newest)"),
    ROUNDS.but(help="rounds at most (default: as many as it had)"),
    _MODEL.but(help="another model for the rounds to come (default: the session's)"),
    _BASE_URL.but(help="the model's server (default: the session's, or OPENAI_BASE_URL)"),
    TARGET,
    NO_HISTORY,
    STORE,
)
"""Options of ``resume``."""
_REVISION = "rN[:HUNK,…]"

CELL = (
    argument("--name", help="name of the session and its variable (default: the function's name)"),
    argument("--problem", metavar="FILE.py", help="read the problem from a file; the cell is ignored"),
    LIBRARY,
    *_MAGIC_REFINING,
)
"""Arguments of ``%%cutegen``."""

SESSION_COMMANDS: tuple[Command, ...] = (
    Command(
        name="demo",
        summary="Refine a shipped problem.",
        example="cutegen-nb demo",
        arguments=_REFINING,
        everyday=True,
    ),
    Command(
        name="run",
        summary="Refine the problem of a file.",
        example="cutegen-nb run relu.py --rounds 4 --json",
        arguments=(
            PROBLEM.but(help="Model, get_inputs, get_init_inputs; or a function"),
            argument("--name", help="name of the session; the file's name unless given"),
            LIBRARY,
            *_REFINING,
        ),
        magic=(
            PROBLEM.but(metavar="FILE.py", help="as for the cell magic"),
            argument("--name", help="name of the session and its variable (default: the file's name)"),
            LIBRARY,
            *_MAGIC_REFINING,
        ),
        everyday=True,
    ),
    Command(
        name="status",
        summary="Say what the session is doing, or what it waits for.",
        magic=(_ANY_SESSION, _SAME_NAME, STORE),
    ),
    Command(
        name="approve",
        summary="Send the request, build on the revision, or go on with the members of an epoch.",
        magic=(
            NAME,
            argument(
                "--predict",
                default="",
                metavar="WORDS",
                help='at a request: your prediction, as "gmem_sectors down 75 %%"; the ledger scores it',
            ),
        ),
        words="kept with the decision",
    ),
    Command(
        name="reject",
        summary="Do not build on the revision, and say why.",
        magic=(NAME,),
        words="why; the author is told",
    ),
    Command(
        name="overrule",
        summary="Build on a revision although the evidence speaks against it, and say why.",
        magic=(NAME,),
        words="why the evidence is wrong; kept with the verdict",
    ),
    Command(
        name="steer",
        summary="Ask something more: of this request, or of the next one.",
        magic=(NAME,),
        words="what; the author is told",
    ),
    Command(
        name="edit",
        summary="Put the request or the kernel into a new cell to edit, or take it from a file.",
        magic=(
            NAME,
            argument("file", nargs="?", metavar="FILE", help="the new text (default: a new cell)"),
        ),
    ),
    Command(
        name="branch",
        summary="Go on from another revision: %cutegen branch r1",
        magic=(NAME, argument("revision", metavar="rN", help="one that passed")),
    ),
    Command(
        name="merge",
        summary="Merge the changes of two revisions into one kernel.",
        example="cutegen-nb merge relu r3 r4:1,2 -o both.py",
        arguments=(
            SESSION,
            argument(
                "first",
                metavar=_REVISION,
                help="a revision, or some hunks of its change from the common parent",
            ),
            argument("second", metavar=_REVISION, help="likewise"),
            OUTPUT.but(metavar="FILE.py"),
            STORE,
            JSON,
        ),
        magic=(
            NAME,
            argument(
                "revisions",
                nargs=2,
                metavar=_REVISION,
                help="its hunks are numbered as in a diff from the revision that both came from",
            ),
        ),
    ),
    Command(
        name="pin",
        summary="Keep a kernel of the population, whatever selection says: %cutegen pin r3",
        magic=(NAME,),
        words="rN, and why",
    ),
    Command(
        name="drop",
        summary="Remove a kernel from the population: %cutegen drop r3",
        magic=(NAME,),
        words="rN, and why",
    ),
    Command(
        name="request",
        summary="Have your own strategy tried in the next epoch.",
        magic=(NAME,),
        words="NAME: what to do, in one to three sentences",
    ),
    Command(
        name="forbid",
        summary="Try a strategy no more.",
        magic=(NAME,),
        words="the name of the strategy",
    ),
    Command(
        name="budget",
        summary="Change the epochs or the size of a population: %cutegen budget epochs=6",
        magic=(NAME,),
        words="epochs=N or population=N",
    ),
    Command(
        name="stop",
        summary="End the session now; what runs is killed, finished rounds are kept.",
        magic=(NAME,),
        words="why; kept with it",
    ),
    Command(
        name="wait",
        summary="Wait in this cell until the session has ended or needs you.",
        magic=(NAME, TIMEOUT),
    ),
    Command(
        name="prompt",
        summary="Show the request that an author gets; nothing is sent.",
        example="cutegen-nb prompt relu.py --stage generate",
        arguments=(
            PROBLEM.but(nargs="?", help="the reference; or give --session"),
            argument(
                "--stage",
                choices=[*REQUESTS, *FAILURE_REQUESTS],
                help="which request (default: the one that would come next)",
            ),
            argument("--kernel", metavar="KERNEL.py", help="a kernel to start from or to repair; it is run"),
            argument("--session", metavar="NAME", help="a stored session, whose next round is asked for"),
            argument("--strategy", metavar="NAME", help="the strategy to ask for, of strategies.toml"),
            LIBRARY,
            PROMPTS,
            DEVICE,
            TARGET,
            NO_HISTORY,
            STORE,
            JSON,
        ),
        magic=(NAME,),
    ),
    Command(
        name="replay",
        summary="Show a recorded session again, round by round: nobody is asked and nothing runs.",
        example="cutegen-nb replay relu",
        arguments=(
            SESSION.but(help="a name that `cutegen-nb sessions` lists, or a file that ends in .cutegen"),
            STORE,
            JSON,
        ),
        magic=(
            SESSION.but(metavar="NAME", help="a stored session, or a .cutegen file"),
            argument(
                "--round",
                metavar="rN",
                help="show it up to this round's verdict, and not what was decided on it",
            ),
            STORE,
        ),
    ),
    Command(
        name="rounds",
        summary="The rounds as a DataFrame of the main columns; the session's variable has all: gelu.rounds.",
        magic=(_ANY_SESSION, _SAME_NAME, STORE),
    ),
    Command(
        name="population",
        summary="Show the kernels of a population: descent, speed, optimisations, epochs.",
        example="cutegen-nb population relu",
        arguments=(SESSION, STORE, JSON),
        magic=(_ANY_SESSION, _SAME_NAME, STORE),
    ),
    Command(
        name="diff",
        summary="The change between two revisions, the last two or: %cutegen diff r0 r2",
        magic=(NAME, argument("revisions", nargs="*", metavar="rN", help="the old one and the new one")),
    ),
    Command(
        name="compare",
        summary="Compare all rounds in the panel with one revision: %cutegen compare r0, or parent",
        magic=(
            NAME,
            argument("revision", metavar="rN", help="the revision; parent compares each round with its own"),
        ),
    ),
    Command(
        name="sessions",
        summary="List the stored sessions, or one session's revisions.",
        example="cutegen-nb sessions relu",
        arguments=(
            SESSION.but(nargs="?", help="show how its revisions came about"),
            _SESSIONS_PAGE,
            STORE,
            JSON,
        ),
        magic=(SESSION.but(nargs="?", metavar="NAME", help="show its lineage"), _SESSIONS_PAGE, STORE),
        everyday=True,
    ),
    Command(
        name="report",
        summary="Write a session as one HTML file; in a notebook, show it.",
        example="cutegen-nb report relu -o relu.html",
        arguments=(
            SESSION,
            OUTPUT.but(
                metavar="FILE.html",
                required=False,
                default="",
                help="where to write it (default: SESSION.html in the folder of the sessions, as `run` does)",
            ),
            argument(
                "--whole",
                default="",
                metavar="rN,…",
                help="rounds to show with source and figures: r3, r10-r19 or all (default: 40 at most, the "
                "first, the improvements and the newest)",
            ),
            STORE,
            JSON,
        ),
        magic=(
            _ANY_SESSION,
            _SAME_NAME,
            OUTPUT.but(metavar="FILE.html", required=False, help="write it there instead of showing it"),
            STORE,
        ),
        everyday=True,
    ),
    Command(
        name="panel",
        summary="Show the panel of a session of this kernel again.",
        magic=(_RUNNING_SESSION, _SAME_NAME),
    ),
    Command(
        name="resume",
        summary="Go on with a stored session.",
        example="cutegen-nb resume relu --rounds 8",
        arguments=(*_RESUMING, _POLICY, VERBOSE, JSON),
        magic=(*_RESUMING, _ASKED),
        everyday=True,
    ),
    Command(
        name="help",
        summary="Explain a command.",
        magic=(argument("command", nargs="?", metavar="COMMAND"),),
    ),
)
