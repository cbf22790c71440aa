"""Instruction coverage of the simulator, by architecture.

The rows of ``isa.table`` list the instructions that the PTX ISA documents. No list says which are simulated:
each example is parsed and lowered, and an example that would stop a launch is not supported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from cutegen_nb.simulator.isa.row import Row
from cutegen_nb.simulator.isa.table import CHAPTERS
from cutegen_nb.simulator.machine.program import CONTROL, program_of
from cutegen_nb.simulator.ops.lowering import REGISTRY, Stop
from cutegen_nb.simulator.ptx.faults import SIMULATOR_DEFECTS, SimulatorFault
from cutegen_nb.simulator.ptx.parser import PtxSyntaxError, parse
from cutegen_nb.simulator.state.architectures import ARCHITECTURES

_ARCHITECTURE = re.compile(r"sm_(\d+)(a?)(\+?)")
_FAMILY = 10
"""Architectures of one family have the same number but for its last digit."""
_WITH_FORMS = 4
"""Length of a row that names its forms."""

PRELUDE = """.version 8.8
.target sm_90a
.address_size 64
.global .align 16 .b8 room[512];
.global .align 64 .b32 map[32] = {{0, 0, 263042, 0, 0, 0, 0, 0, 127, 0, 0, 0, 0, 117440512, 0, 0}};
.func (.param .b32 out) twice (.param .b32 given) {{ .reg .b32 %r<3>;
ld.param.b32 %r1, [given]; add.s32 %r2, %r1, %r1; st.param.b32 [out], %r2; ret; }}
.visible .entry example() {{
.reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .b128 %rq<9>;
.shared .align 128 .b8 tile[4096]; .shared .align 8 .b64 gate;
.local .align 16 .b8 own[64];
mov.u64 %rd1, room; mov.u32 %r1, tile; mov.u64 %rd2, tile; cvta.shared.u64 %rd2, %rd2; mov.u64 %rd3, own;
mov.u64 %rd7, map; st.global.u64 [%rd7], %rd1;
mov.u32 %r3, %tid.x; setp.lt.u32 %p1, %r3, 5; cvt.u64.u32 %rd4, %r3; cvt.u16.u32 %rs3, %r3;
mov.u32 %r6, gate; mov.u64 %rd8, gate; cvta.shared.u64 %rd8, %rd8;
setp.eq.u32 %p4, %r3, 0; @%p4 mbarrier.init.shared.b64 [%r6], 32; bar.sync 0;
{example}
ret; }}
"""
"""PTX of a kernel around an example, to be put in for ``{example}``; ``isa.table`` lists its registers.

``map`` is a tensor map of 128 float32 numbers in ``room`` with a box of 8 (``state.tensor_map``).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionForm:
    """Documented instruction, or those of its forms that came with one architecture."""

    name: str
    """Name in the PTX ISA: ``add``, ``cp.async.commit_group``."""
    chapter: str
    """Chapter of the PTX ISA."""
    since: str
    """First architecture that has it; ``sm_80`` for what is older. One that ends in ``a`` stands for its
    family (``sm_100a`` for sm_103a too), with a ``+`` for all later ones as well."""
    forms: str
    """Types and modifiers in words; for most, those of its registry entry."""
    example: str
    """PTX that uses it; empty where none is simulated."""
    why_not: str
    """Reason why the example is not simulated; empty where the instruction is simulated."""

    @property
    def supported(self) -> bool:
        """True if the simulator supports the instruction."""
        return not self.why_not

    def on(self, architecture: str) -> bool:
        """Return whether an architecture has the instruction.

        Raises:
            ValueError: the architecture is not one that is simulated.
        """
        if architecture not in ARCHITECTURES:
            message = f"{architecture!r} is not simulated; choose one of {', '.join(ARCHITECTURES)}"
            raise ValueError(message)
        number, special, later = _parsed(self.since)
        mine, also, _ = _parsed(architecture)
        if special and not later:
            return also and number <= mine and number // _FAMILY == mine // _FAMILY
        return number < mine or (number == mine and (also or not special))


def _parsed(architecture: str) -> tuple[int, bool, bool]:
    match = _ARCHITECTURE.fullmatch(architecture)
    assert match is not None, architecture
    return int(match[1]), bool(match[2]), bool(match[3])


@lru_cache(maxsize=1)
def instruction_set() -> tuple[InstructionForm, ...]:
    """Every documented instruction with its support, by chapter."""
    return tuple(_form(chapter, row) for chapter, rows in CHAPTERS.items() for row in rows)


def _form(chapter: str, row: Row) -> InstructionForm:
    name, since, example = row[:3]
    why = refusal_of(example) if example else "no form of it is simulated"
    head = name.split(".")[0]
    forms = REGISTRY[head].forms if head in REGISTRY else CONTROL.get(head, "")
    if len(row) == _WITH_FORMS:
        forms = row[-1]
    elif why or _names_with(head) > 1:
        forms = ""  # the registry's words for that head are of other instructions too
    return InstructionForm(name=name, chapter=chapter, since=since, forms=forms, example=example, why_not=why)


@lru_cache(maxsize=512)
def _names_with(head: str) -> int:
    """Number of documented names whose first dotted part is ``head``."""
    return len({row[0] for rows in CHAPTERS.values() for row in rows if row[0].split(".")[0] == head})


def refusal_of(example: str) -> str:
    """Reason why a kernel with the example in it does not run; empty if nothing stops it."""
    try:
        module = parse(PRELUDE.format(example=example))
        program = program_of(module, module.kernels["example"])
    except (PtxSyntaxError, SimulatorFault) as refusal:
        return str(refusal)
    except SIMULATOR_DEFECTS as problem:
        return f"{type(problem).__name__}: {problem}"
    stops = [one.fault for part in program.segments for one in part.operations if isinstance(one, Stop)]
    return str(stops[0]) if stops else ""
