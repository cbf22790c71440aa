"""Commands on one kernel, one problem or this machine."""

from __future__ import annotations

from cutegen_nb.app.arguments import (
    ARCHITECTURE,
    BASELINE,
    COMPILED_FOR,
    DEADLINE,
    DEVICE,
    JSON,
    LIBRARY,
    MAX_CTAS,
    OUTPUT,
    PROBLEM,
    RAY,
    SESSION,
    STORE,
    STRICT,
    TIER,
    VERBOSE,
    WORKERS,
    argument,
)
from cutegen_nb.app.command import Command
from cutegen_nb.core.evaluation import Tier
from cutegen_nb.core.problem import WorkloadClass
from cutegen_nb.evaluator.tools.ncu import Detail
from cutegen_nb.simulator.state.architectures import LARGEST_ARCHITECTURE

SIMULATE_MAGIC = (
    ARCHITECTURE,
    MAX_CTAS,
    DEADLINE,
    argument("--name", help="a variable for what was found: launches, findings, counters"),
    STRICT.but(help="fail the cell when the program fails or a finding stands"),
)
"""Arguments of ``%%simulate``."""

_STRATEGY = argument("name", nargs="?", metavar="NAME", help="explain this one, with every record")
_CLASS = argument(
    "--class",
    dest="workload_class",
    choices=[item.value for item in WorkloadClass],
    metavar="CLASS",
    help=f"those for one class of problems: {', '.join(WorkloadClass)}",
)

KERNEL_COMMANDS: tuple[Command, ...] = (
    Command(
        name="evaluate",
        summary="Judge one kernel file against a problem.",
        example="cutegen-nb evaluate relu.py my_relu.py",
        arguments=(
            PROBLEM.but(nargs="?"),
            argument("candidate", nargs="?", metavar="CANDIDATE.py", help="a file with ModelNew"),
            argument(
                "--batch",
                metavar="JOBS.jsonl",
                help="a file of jobs by `cutegen-nb pending`, instead of both",
            ),
            OUTPUT.but(
                required=False,
                metavar="RESULTS.jsonl",
                help="with --batch: a line a result, as soon as it is there",
            ),
            TIER.but(
                default=Tier.A.value,
                help="how closely to look: A as every round, B before it may become best, C before an export "
                "(default: A)",
            ),
            LIBRARY,
            DEVICE,
            COMPILED_FOR,
            WORKERS,
            RAY,
            BASELINE,
            VERBOSE,
            JSON,
        ),
        everyday=True,
    ),
    Command(
        name="simulate",
        summary="Run a CuTe DSL program with no GPU and report what its kernels did.",
        arguments=(
            argument(
                "script",
                nargs="?",
                metavar="SCRIPT.py",
                help="the program; what follows it is for the program",
            ),
            argument("arguments", nargs="...", help="the program's own arguments"),
            argument(
                "-m",
                dest="is_module",
                action="store_true",
                help="the program is a module, found by its name as by python -m",
            ),
            ARCHITECTURE,
            MAX_CTAS,
            DEADLINE,
            argument(
                "--json",
                metavar="FILE",
                help="write the report as JSON; - for standard output, and the program's own to "
                "standard error",
            ),
            argument("--html", metavar="FILE", help="write the report as one HTML file"),
        ),
        everyday=True,
    ),
    Command(
        name="profile",
        summary="Count what a kernel does, or read a report of Nsight Compute.",
        example="cutegen-nb profile relu.py my_relu.py --html relu.html; cutegen-nb profile others.ncu-rep",
        arguments=(
            argument(
                "file",
                metavar="FILE",
                help="a report of Nsight Compute (.ncu-rep), or PROBLEM.py, then KERNEL.py",
            ),
            argument("kernel", nargs="?", metavar="KERNEL.py", help="a file with ModelNew"),
            argument(
                "--detail",
                choices=[one.value for one in Detail],
                default=Detail.TUNING.value,
                help="on a GPU: traffic and units only, or stalls and every line too (default: tuning)",
            ),
            argument("--only", metavar="REGEX", help="of a report: kernels whose name matches"),
            argument("--source", metavar="FILE.py", help="of a report: the source its lines are of"),
            argument("--html", metavar="OUT.html", help="write a page with the source line by line"),
            argument("--lines", action="store_true", help="list every line that has counts"),
            LIBRARY,
            DEVICE,
            COMPILED_FOR,
            JSON,
        ),
        everyday=True,
    ),
    Command(
        name="verify",
        summary="Judge an exported kernel again, against the problem its file holds.",
        example="cutegen-nb verify relu_kernel.py",
        arguments=(
            argument("file", metavar="KERNEL.py", help="what `cutegen-nb export` wrote"),
            TIER.but(default=Tier.C.value, help="how closely to look: C as before an export unless given"),
            DEVICE,
            COMPILED_FOR,
            VERBOSE,
            JSON,
        ),
    ),
    Command(
        name="pending",
        summary="Write the kernels of a session that nothing timed yet, to be evaluated elsewhere.",
        example="cutegen-nb pending relu -o jobs.jsonl",
        arguments=(
            SESSION,
            OUTPUT.but(metavar="JOBS.jsonl", help="where to write the jobs"),
            TIER.but(default=Tier.B.value, help="how closely to look there"),
            argument("--every", action="store_true", help="all that passed, not the approved ones alone"),
            argument("--again", action="store_true", help="also what was measured elsewhere before"),
            STORE,
            JSON,
        ),
    ),
    Command(
        name="absorb",
        summary="Take in what `evaluate --batch` found elsewhere.",
        example="cutegen-nb absorb results.jsonl",
        arguments=(
            argument("results", metavar="RESULTS.jsonl", help="what `evaluate --batch` wrote"),
            argument("--session", help="the session they are for, where it has another name here"),
            STORE,
            JSON,
        ),
    ),
    Command(
        name="problem",
        summary="Say what is known of a problem, and which wrong answers would pass.",
        example="cutegen-nb problem relu.py --json",
        arguments=(PROBLEM, DEVICE, JSON),
    ),
    Command(
        name="layout",
        summary="Draw a CuTe layout as SVG, with PNG beside it.",
        example='cutegen-nb layout "(8,64):(64,1)" --swizzle 3,3,3 --element f16 --banks -o tile.svg',
        arguments=(
            argument("layout", metavar="LAYOUT", help="as CuTe writes it: (8,(2,4)):(8,(1,2))"),
            argument("--swizzle", default="", metavar="B,M,S", help="swizzle of the index: 3,3,3"),
            argument(
                "--swizzle-bytes",
                action="store_true",
                help="the swizzle is of byte addresses, as the pointers of the DSL's shared tensors have it",
            ),
            argument("--element", default="", metavar="TYPE", help="type of an element: f16, bf16, f32 …"),
            argument("--banks", action="store_true", help="colour by bank of shared memory"),
            argument(
                "--tile",
                default="",
                metavar="TILE",
                help="LAYOUT is (thread, value) over this tile: (16,8)",
            ),
            argument(
                "--over",
                default="",
                metavar="TENSOR",
                help="layout in shared memory that these threads access",
            ),
            argument(
                "--access-bits",
                type=int,
                default=0,
                metavar="N",
                choices=(8, 16, 32, 64, 128),
                help="bits that a thread moves at once (default: one element)",
            ),
            argument("--dark", action="store_true", help="a dark PNG; the SVG follows its viewer"),
            OUTPUT.but(metavar="FILE.svg"),
            JSON,
        ),
    ),
    Command(
        name="checks",
        summary="List what an evaluation checks, and what each check stops.",
        example="cutegen-nb checks --json",
        arguments=(JSON,),
    ),
    Command(
        name="exploits",
        summary="Judge the shipped cheats and the honest kernels that resemble them.",
        example="cutegen-nb exploits --json",
        arguments=(
            argument(
                "--only",
                action="append",
                metavar="NAME",
                default=[],
                help="this one and its variants; may be repeated",
            ),
            argument(
                "--no-screening",
                action="store_true",
                help="do not read the sources first, so that only running them can catch a cheat",
            ),
            argument("--list", action="store_true", help="say what there is and run nothing"),
            DEVICE,
            JSON,
        ),
    ),
    Command(
        name="instructions",
        summary="List the PTX instructions that the simulator knows, and those that it does not.",
        example="cutegen-nb instructions --arch sm_80",
        arguments=(
            ARCHITECTURE.but(default=None, help=f"the architecture (default: {LARGEST_ARCHITECTURE})"),
            argument("--markdown", action="store_true", help="print a table for a document"),
            JSON,
        ),
    ),
    Command(
        name="profiles",
        summary="List the model servers of the config file, or try one: `profiles check NAME`.",
        example="cutegen-nb profiles check local",
        arguments=(
            argument("action", nargs="?", choices=("list", "check"), default="list", help="what to do"),
            argument("name", nargs="?", metavar="NAME", help="the profile to check"),
            JSON,
        ),
    ),
    Command(
        name="ptx",
        summary="The compiled code of a revision, of the best one or: %cutegen ptx r2",
        magic=(
            argument("--name", help="the session (default: the one started last)"),
            argument("revision", nargs="?", metavar="rN", help="the revision"),
            argument("--sass", action="store_true", help="the machine code in place of PTX"),
        ),
    ),
    Command(
        name="strategies",
        summary="List the strategies, with the effects that earlier sessions recorded.",
        example="cutegen-nb strategies vectorise-128; cutegen-nb strategies --problem relu.py",
        arguments=(
            _STRATEGY,
            _CLASS,
            argument(
                "--problem",
                metavar="PROBLEM.py",
                help="rank them for this problem by what they did on like ones, and say why",
            ),
            argument("--export", metavar="FILE.json", help="write the records of this machine to a file"),
            argument(
                "--import",
                dest="import_file",
                metavar="FILE.json",
                help="take in records that --export wrote; nothing of the file is run",
            ),
            DEVICE,
            JSON,
        ),
        magic=(_STRATEGY, _CLASS),
    ),
    Command(
        name="doctor",
        summary="Say what this machine offers and what will run where.",
        example="cutegen-nb doctor",
        arguments=(DEVICE, STORE, JSON),
        magic=(),
        everyday=True,
    ),
)
