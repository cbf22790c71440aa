"""Every check: what it is called, which exploit it stops, when it runs, what it costs.

Plain values, so that listing them imports no torch.  A check's code is in the module that it names;
protocol numbers are those of the evaluation protocol (F: does it compute the function, W: did this kernel
do the work, I: is the harness still itself).
"""

from __future__ import annotations

from dataclasses import dataclass

from cutegen_nb.core.evaluation import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check."""

    name: str
    """As reports name it."""
    protocol: str
    """Its number in the protocol: ``F10``."""
    tier: Tier
    """The tier it first runs at."""
    stops: str
    """The exploit it is there for."""
    cost: str
    """``free``, ``one call``, ``some calls``, ``seconds``."""
    decides: bool = True
    """Whether what it finds can fail a candidate; otherwise it is a flag for a person."""
    needs_gpu: bool = False
    """Whether it can only run on a GPU."""
    needs_simulator: bool = False
    """Whether it can only run on the simulator."""
    instead: str = ""
    """What looks for the same where it cannot run."""
    where: str = ""
    """Module that holds its code."""


_TRIAL = "cutegen_nb.gpu.trial"
_COMPARING = "cutegen_nb.gpu.comparing"
_INTERCEPTION = "cutegen_nb.gpu.interception"
_TIMING = "cutegen_nb.gpu.believing"
_HERE = "cutegen_nb.gpu.checks"

SEEDS = Check(
    name="fresh seeds drawn after the import",
    protocol="F1, F4",
    tier=Tier.A,
    stops="answers kept for known inputs; a seed memo",
    cost="one call a seed",
    where=_TRIAL,
)
CONTRACT = Check(
    name="number, shape and dtype of outputs",
    protocol="F5",
    tier=Tier.A,
    stops="a lazy subclass, a half-precision output, a missing output",
    cost="free",
    where=_COMPARING,
)
VALUES = Check(
    name="values within the element gate and the relative L2 gate",
    protocol="F7, F9",
    tier=Tier.A,
    stops="zeros, a mean, an input handed back, an approximation that a wide tolerance lets pass",
    cost="free",
    where=_COMPARING,
)
ORACLE = Check(
    name="float64 oracle",
    protocol="F9",
    tier=Tier.A,
    stops="a tolerance wider than what a faithful implementation needs",
    cost="one run of the reference",
    where=_COMPARING,
)
POISON = Check(
    name="outputs poisoned",
    protocol="F3",
    tier=Tier.A,
    stops="outputs never written, freed memory of the reference reused",
    cost="free",
    where=_INTERCEPTION,
)
INPUTS_KEPT = Check(
    name="inputs unchanged",
    protocol="F6",
    tier=Tier.A,
    stops="inputs corrupted so that the reference agrees",
    cost="free",
    where=_COMPARING,
)
AGAIN = Check(
    name="candidate, reference, candidate again",
    protocol="F2, W5",
    tier=Tier.A,
    stops="right at the first call only; a result kept by pointer: the second call has fresh memory",
    cost="one call",
    where=_TRIAL,
)
SAME_STORAGE = Check(
    name="same storage, new contents",
    protocol="W4",
    tier=Tier.A,
    stops="a result kept by pointer, identity, shape or version of the inputs",
    cost="free",
    where=_TRIAL,
)
COMPUTE = Check(
    name="PyTorch computation intercepted",
    protocol="W2",
    tier=Tier.A,
    stops="torch.matmul behind a wrapper, a try/except that falls back to PyTorch",
    cost="free",
    where=_INTERCEPTION,
)
LAUNCHED = Check(
    name="a kernel was launched in every call",
    protocol="W1",
    tier=Tier.A,
    stops="an output that no kernel made, from the second call on too",
    cost="free",
    needs_simulator=True,
    where=f"{_HERE}.work_done",
)
WRITTEN = Check(
    name="outputs written by a launched kernel",
    protocol="W9",
    tier=Tier.A,
    stops="a decoy launch beside an output that something else made",
    cost="free",
    needs_simulator=True,
    where=f"{_HERE}.work_done",
)
READ = Check(
    name="what kernels read is explained",
    protocol="W2",
    tier=Tier.A,
    stops="an answer that NumPy or another thread or process computed, and a kernel only copied",
    cost="free",
    needs_simulator=True,
    where=f"{_HERE}.read_origin",
)
TRANSFERS = Check(
    name="no results by way of the host",
    protocol="W2, W9",
    tier=Tier.A,
    stops="an answer computed on the host from copied inputs and brought back",
    cost="free",
    needs_gpu=True,
    where=f"{_HERE}.host_copies",
)
GUARDS = Check(
    name="guard bands around buffers",
    protocol="F15",
    tier=Tier.A,
    stops="a write past the end of an input or of what the candidate allocated",
    cost="free",
    needs_gpu=True,
    where="cutegen_nb.gpu.guards",
)
SAME_LAUNCHES = Check(
    name="same launches at every call",
    protocol="W3",
    tier=Tier.A,
    stops="less work on calls that are not checked",
    cost="free",
    decides=False,
    needs_simulator=True,
    where=f"{_HERE}.work_done",
)
RACES = Check(
    name="shared memory ordered by barriers",
    protocol="W5",
    tier=Tier.A,
    stops="a missing barrier, which a GPU shows now and then only",
    cost="free",
    needs_simulator=True,
    where="cutegen_nb.simulator.shared_watch",
)
ASYNC_COPIES = Check(
    name="asynchronous copies waited for",
    protocol="W5",
    tier=Tier.A,
    stops="shared memory read or overwritten while a cp.async is under way",
    cost="free",
    needs_simulator=True,
    where="cutegen_nb.simulator.shared_watch",
)
UNWRITTEN = Check(
    name="results independent of memory never written",
    protocol="F3",
    tier=Tier.A,
    stops="shared, local or freshly allocated memory read before anything is written",
    cost="free; one run of the launch more where it happens",
    needs_simulator=True,
    where="cutegen_nb.simulator.rerun",
)
CTA_ORDER = Check(
    name="results independent of the order of CTAs",
    protocol="W5",
    tier=Tier.A,
    stops="CTAs that write over one another, or read what others write, with nothing to order them",
    cost="free; two runs of the launch more where it happens",
    needs_simulator=True,
    where="cutegen_nb.simulator.rerun",
)
BARRIERS = Check(
    name="barriers reached by whole CTAs",
    protocol="W5",
    tier=Tier.A,
    stops="a barrier inside a branch that some threads do not take",
    cost="free",
    decides=False,
    needs_simulator=True,
    where="cutegen_nb.simulator.barriers",
)
LIMITS = Check(
    name="launches within the architecture",
    protocol="W1",
    tier=Tier.A,
    stops="more shared memory, registers or threads than the GPU has",
    cost="free",
    decides=False,
    needs_simulator=True,
    where="cutegen_nb.simulator.launching",
)
HARNESS = Check(
    name="harness unchanged",
    protocol="I4",
    tier=Tier.A,
    stops="a patched comparison, clock or event",
    cost="free",
    where=_INTERCEPTION,
)
SETTINGS = Check(
    name="global settings put back",
    protocol="I6",
    tier=Tier.A,
    stops="TF32 or a default dtype switched on for the reference",
    cost="free",
    decides=False,
    where=_INTERCEPTION,
)
THREADS = Check(
    name="no new threads",
    protocol="I7",
    tier=Tier.A,
    stops="work in a thread, outside the clock",
    cost="free",
    decides=False,
    where=_INTERCEPTION,
)
PARAMETERS = Check(
    name="constant parameters redrawn",
    protocol="F14",
    tier=Tier.A,
    stops="affine weights and biases ignored",
    cost="free",
    where="cutegen_nb.gpu.candidate_module",
)
ADMISSION = Check(
    name="problem admission",
    protocol="F8",
    tier=Tier.A,
    stops="zeros, a copy or a dropped term passing because the problem's inputs cannot tell",
    cost="once a problem",
    where=f"{_HERE}.admission",
)
TRACE = Check(
    name="kernel trace of one call",
    protocol="W1",
    tier=Tier.A,
    stops="a library in place of the candidate's kernel; an empty trace is no verdict",
    cost="one call",
    needs_gpu=True,
    where=_TIMING,
)
RECHECKED = Check(
    name="timed outputs compared again",
    protocol="W6",
    tier=Tier.A,
    stops="right when checked, fake when timed",
    cost="one call",
    needs_gpu=True,
    where=_TIMING,
)
FLOOR = Check(
    name="physical floor",
    protocol="W10",
    tier=Tier.A,
    stops="a time that the memory system does not allow",
    cost="free",
    needs_gpu=True,
    where=_TIMING,
)
MORE_SEEDS = Check(
    name="more seeds",
    protocol="F4",
    tier=Tier.B,
    stops="answers that are right for most inputs",
    cost="one call a seed",
    where=_TRIAL,
)
EXACT = Check(
    name="exact integer inputs",
    protocol="F10",
    tier=Tier.B,
    stops="reduced-precision products, a dropped tail of the sum",
    cost="some calls",
    where=f"{_HERE}.exact_integers",
)
STRESS = Check(
    name="stress inputs",
    protocol="F11",
    tier=Tier.B,
    stops="a norm replaced by its expectation, data never read, dispatch on magnitude",
    cost="some calls",
    where=f"{_HERE}.stress",
)
PARTS = Check(
    name="every part of every input",
    protocol="F11, W9",
    tier=Tier.B,
    stops="a quarter of the data never read, a dropped tail of a sum",
    cost="some calls",
    where=f"{_HERE}.parts",
)
MANY_CALLS = Check(
    name="many calls",
    protocol="W3, W12",
    tier=Tier.B,
    stops="work skipped after N calls",
    cost="some calls",
    where=f"{_HERE}.many_calls",
)
MATRIX_TYPES = Check(
    name="types of matrix instructions",
    protocol="F9",
    tier=Tier.B,
    stops="TF32 or half precision in a float32 problem",
    cost="free",
    decides=False,
    needs_simulator=True,
    where=f"{_HERE}.matrix_types",
)
LAYOUTS = Check(
    name="strides and alignment",
    protocol="F13",
    tier=Tier.B,
    stops="inputs assumed contiguous",
    cost="some calls",
    decides=False,
    where=f"{_HERE}.layouts",
)
SHAPES = Check(
    name="other shapes and thresholds of the source",
    protocol="F13",
    tier=Tier.B,
    stops="another path above a size: right when checked, wrong when timed",
    cost="seconds",
    where=f"{_HERE}.shapes",
)
SECOND_PROCESS = Check(
    name="second process, other seeds",
    protocol="W12",
    tier=Tier.C,
    stops="behaviour by a counter or a file that the first run left",
    cost="seconds",
    where="cutegen_nb.gpu.evaluator",
)

MEMCHECK = Check(
    name="compute-sanitizer memcheck",
    protocol="F15, F16",
    tier=Tier.C,
    stops="reads and writes outside every tensor, which neighbours in memory hide",
    cost="10 s: a process",
    needs_gpu=True,
    instead="the simulator checks every access itself",
    where=f"{_HERE}.sanitizer",
)
RACECHECK = Check(
    name="compute-sanitizer racecheck",
    protocol="F16",
    tier=Tier.C,
    stops="shared memory read and written with no barrier between",
    cost="10 s: a process",
    needs_gpu=True,
    instead=f"the simulator has its own: {RACES.name}, {ASYNC_COPIES.name}",
    where=f"{_HERE}.sanitizer",
)
INITCHECK = Check(
    name="compute-sanitizer initcheck",
    protocol="F16",
    tier=Tier.C,
    stops="global memory read that nothing wrote",
    cost="10 s: a process",
    decides=False,
    needs_gpu=True,
    instead=f"the simulator has its own: {UNWRITTEN.name}",
    where=f"{_HERE}.sanitizer",
)
SYNCCHECK = Check(
    name="compute-sanitizer synccheck",
    protocol="F16",
    tier=Tier.C,
    stops="barriers that a part of a CTA or warp does not reach",
    cost="10 s: a process",
    decides=False,
    needs_gpu=True,
    instead=f"the simulator has its own: {BARRIERS.name}",
    where=f"{_HERE}.sanitizer",
)

CHECKS: tuple[Check, ...] = (
    SEEDS, CONTRACT, VALUES, ORACLE, POISON, INPUTS_KEPT, AGAIN, SAME_STORAGE, COMPUTE, LAUNCHED, WRITTEN,
    READ, TRANSFERS, GUARDS, SAME_LAUNCHES, RACES, ASYNC_COPIES, UNWRITTEN, CTA_ORDER, BARRIERS, LIMITS,
    HARNESS, SETTINGS, THREADS, PARAMETERS, ADMISSION, TRACE, RECHECKED, FLOOR, MORE_SEEDS,
    EXACT, STRESS, PARTS, MANY_CALLS, MATRIX_TYPES, LAYOUTS, SHAPES, SECOND_PROCESS,
    MEMCHECK, RACECHECK, INITCHECK, SYNCCHECK,
)  # fmt: skip
"""In the order in which they are listed."""


MACHINE_CHECKS: dict[str, Check] = {
    "race": RACES,
    "async-hazard": ASYNC_COPIES,
    "uninitialised-read": UNWRITTEN,
    "cta-order": CTA_ORDER,
    "divergent-barrier": BARRIERS,
    "launch-refused": LIMITS,
}
"""The simulator's checks by the kind of their findings."""


def by_name(name: str) -> Check:
    """The check of that name. Raises KeyError."""
    return {item.name: item for item in CHECKS}[name]
