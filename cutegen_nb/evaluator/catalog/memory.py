"""Checks of memory accesses and barriers: the simulator's own, guard bands, compute-sanitizer."""

from __future__ import annotations

from cutegen_nb.core.evaluation import Tier
from cutegen_nb.evaluator.catalog.check import Check

_SHARED_WATCH = "cutegen_nb.simulator.checkers.shared_memory"
_RERUN = "cutegen_nb.simulator.machine.rerun"
_HERE = "cutegen_nb.evaluator"

GUARDS = Check(
    name="guard bands around buffers",
    protocol="F15",
    tier=Tier.A,
    stops="a write past the end of an input or of what the candidate allocated",
    cost="free",
    needs_gpu=True,
    where="cutegen_nb.evaluator.observe.guard_bands",
)

RACES = Check(
    name="shared memory ordered by barriers",
    protocol="W5",
    tier=Tier.A,
    stops="a missing barrier, which a GPU shows now and then only",
    cost="free",
    needs_simulator=True,
    where=_SHARED_WATCH,
)

ASYNC_COPIES = Check(
    name="asynchronous copies waited for",
    protocol="W5",
    tier=Tier.A,
    stops="shared memory read or overwritten while a cp.async is under way",
    cost="free",
    needs_simulator=True,
    where=_SHARED_WATCH,
)

UNWRITTEN = Check(
    name="results independent of memory never written",
    protocol="F3",
    tier=Tier.A,
    stops="shared, local or freshly allocated memory read before anything is written",
    cost="free; one run of the launch more where it happens",
    needs_simulator=True,
    where=_RERUN,
)

CTA_ORDER = Check(
    name="results independent of the order of CTAs",
    protocol="W5",
    tier=Tier.A,
    stops="CTAs that write over one another, or read what others write, with nothing to order them",
    cost="free; two runs of the launch more where it happens",
    needs_simulator=True,
    where=_RERUN,
)

BARRIERS = Check(
    name="barriers reached by whole CTAs",
    protocol="W5",
    tier=Tier.A,
    stops="a barrier inside a branch that some threads do not take",
    cost="free",
    decides=False,
    needs_simulator=True,
    where="cutegen_nb.simulator.machine.barriers",
)

LIMITS = Check(
    name="launches within the architecture",
    protocol="W1",
    tier=Tier.A,
    stops="more shared memory, registers or threads than the GPU has",
    cost="free",
    decides=False,
    needs_simulator=True,
    where="cutegen_nb.simulator.state.launch",
)

MEMCHECK = Check(
    name="compute-sanitizer memcheck",
    protocol="F15, F16",
    tier=Tier.C,
    stops="reads and writes outside every tensor, which neighbours in memory hide",
    cost="10 s: a process",
    needs_gpu=True,
    instead="the simulator checks every access itself",
    where=f"{_HERE}.tools.sanitizer_checks",
)

RACECHECK = Check(
    name="compute-sanitizer racecheck",
    protocol="F16",
    tier=Tier.C,
    stops="shared memory read and written with no barrier between",
    cost="10 s: a process",
    needs_gpu=True,
    instead=f"the simulator has its own: {RACES.name}, {ASYNC_COPIES.name}",
    where=f"{_HERE}.tools.sanitizer_checks",
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
    where=f"{_HERE}.tools.sanitizer_checks",
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
    where=f"{_HERE}.tools.sanitizer_checks",
)
