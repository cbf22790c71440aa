"""Checks that the candidate's kernel did the work: launches, writes of outputs, plausible times."""

from __future__ import annotations

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.catalog.check import Check

_TRIAL = "cutegen_nb.evaluator.trial.trial"
_INTERCEPTION = "cutegen_nb.evaluator.observe.dispatch_watch"
_TIMING = "cutegen_nb.evaluator.timing.plausibility"
_HERE = "cutegen_nb.evaluator"

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
    where=f"{_HERE}.trial.kernel_work",
)

WRITTEN = Check(
    name="outputs written by a launched kernel",
    protocol="W9",
    tier=Tier.A,
    stops="a decoy launch beside an output that something else made",
    cost="free",
    needs_simulator=True,
    where=f"{_HERE}.trial.kernel_work",
)

READ = Check(
    name="what kernels read is explained",
    protocol="W2",
    tier=Tier.A,
    stops="an answer that NumPy or another thread or process computed, and a kernel only copied",
    cost="free",
    needs_simulator=True,
    where=f"{_HERE}.trial.kernel_reads",
)

TRANSFERS = Check(
    name="no results by way of the host",
    protocol="W2, W9",
    tier=Tier.A,
    stops="an answer computed on the host from inputs that it read",
    cost="free",
    where=f"{_HERE}.trial.host_copies",
)

SAME_LAUNCHES = Check(
    name="same launches at every call",
    protocol="W3",
    tier=Tier.A,
    stops="less work on calls that are not checked",
    cost="free",
    decides=False,
    needs_simulator=True,
    where=f"{_HERE}.trial.kernel_work",
)

TRACE = Check(
    name="kernel trace of one call",
    protocol="W1",
    tier=Tier.A,
    stops="a library in place of the candidate's kernel; work on another stream or when it is timed only; an "
    "empty trace is no verdict",
    cost="some calls",
    needs_gpu=True,
    where=_TIMING,
)

RECHECKED = Check(
    name="timed outputs compared again",
    protocol="W6",
    tier=Tier.A,
    stops="right when checked, fake when timed: less done, an answer kept, memory with a right answer in it",
    cost="some calls",
    needs_gpu=True,
    where="cutegen_nb.evaluator.timing.timed_outputs",
)

FLOOR = Check(
    name="physical floor",
    protocol="W10",
    tier=Tier.A,
    stops="a time that the memory system does not allow",
    cost="free",
    needs_gpu=True,
    where="cutegen_nb.evaluator.timing.floors",
)

MANY_CALLS = Check(
    name="many calls",
    protocol="W3, W12",
    tier=Tier.B,
    stops="work skipped after N calls",
    cost="some calls",
    where=f"{_HERE}.probes.repetition",
)

SECOND_PROCESS = Check(
    name="second process, other seeds",
    protocol="W12",
    tier=Tier.C,
    stops="behaviour by a counter or a file that the first run left",
    cost="seconds",
    where="cutegen_nb.evaluator.evaluator",
)
