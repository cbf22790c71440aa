"""Decoder of SASS instruction names from their encoding, without a disassembler.

From sm_70 on an instruction has 128 bits. The low 9 bits name the operation and the next 3 the form of its
operands. NVIDIA documents the names (CUDA Binary Utilities, "Instruction Set Reference") but not the numbers.
These were read from the output of ``nvdisasm`` for kernels of sm_80, sm_90, sm_100 and sm_120, and a test
compares them with it. Numbers that are not in the table count as ``other``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

INSTRUCTION_BYTES = 16
"""Bytes of an instruction from sm_70 on."""
OTHER = "other"
"""Name of an instruction that is not in the table."""
_OPERATION = 0x1FF
"""Mask of the operation in the low word of an instruction."""

_NAMES = {
    0x001: "PMTRIG", 0x002: "MOV", 0x003: "P2R", 0x004: "R2P", 0x005: "CS2R", 0x006: "VOTE", 0x007: "SEL",
    0x008: "FSEL", 0x009: "FMNMX", 0x00A: "FSET", 0x00B: "FSETP", 0x00C: "ISETP", 0x00F: "VIMNMX3",
    0x010: "IADD3", 0x011: "LEA", 0x012: "LOP3", 0x013: "IABS", 0x014: "VABSDIFF", 0x015: "VABSDIFF4",
    0x016: "PRMT", 0x017: "IMNMX", 0x019: "SHF", 0x01A: "SGXT", 0x01B: "BMSK", 0x01C: "PLOP3",
    0x020: "FMUL", 0x021: "FADD", 0x022: "FSWZADD", 0x023: "FFMA", 0x024: "IMAD", 0x025: "IMAD",
    0x026: "IDP", 0x027: "IMAD", 0x028: "DMUL", 0x029: "DADD", 0x02A: "DSETP", 0x02B: "DFMA",
    0x02D: "PREEXIT", 0x02E: "ACQBULK", 0x02F: "ELECT", 0x030: "HADD2", 0x031: "HFMA2", 0x032: "HMUL2",
    0x033: "HSET2", 0x034: "HSETP2", 0x036: "VIADD", 0x037: "IMMA", 0x038: "I2I", 0x039: "I2IP",
    0x03A: "MOVM", 0x03B: "LDSM", 0x03C: "HMMA", 0x03D: "BMMA", 0x03E: "F2FP", 0x03F: "DMMA",
    0x040: "HMNMX2", 0x043: "F2IP", 0x044: "STSM", 0x045: "I2FP", 0x046: "VIADDMNMX", 0x047: "VHMNMX",
    0x048: "VIMNMX", 0x04C: "UVIRTCOUNT",
    0x082: "UMOV", 0x086: "VOTEU", 0x087: "USEL", 0x08C: "UISETP", 0x090: "UIADD3", 0x091: "ULEA",
    0x092: "ULOP3", 0x096: "UPRMT", 0x097: "UIADD3", 0x099: "USHF", 0x09C: "UPLOP3", 0x0A4: "UIMAD",
    0x0A5: "UIMAD", 0x0B9: "ULDC", 0x0BD: "UFLO", 0x0BF: "UPOPC", 0x0CA: "R2UR", 0x0CC: "CREDUX",
    0x100: "FLO", 0x101: "BREV", 0x102: "FCHK", 0x105: "F2I", 0x106: "I2F", 0x107: "FRND", 0x108: "MUFU",
    0x109: "POPC", 0x110: "F2F", 0x111: "F2I", 0x112: "I2F", 0x113: "FRND", 0x118: "NOP", 0x119: "S2R",
    0x11A: "DEPBAR", 0x11D: "BAR", 0x141: "BSYNC", 0x142: "BREAK", 0x144: "CALL", 0x145: "BSSY",
    0x147: "BRA", 0x148: "WARPSYNC", 0x149: "BRX", 0x14D: "EXIT", 0x150: "RET", 0x15C: "BPT",
    0x15D: "NANOSLEEP", 0x180: "LD", 0x181: "LDG", 0x182: "LDC", 0x183: "LDL", 0x184: "LDS", 0x185: "ST",
    0x186: "STG", 0x187: "STL", 0x188: "STS", 0x189: "SHFL", 0x18A: "ATOM", 0x18B: "ATOM", 0x18C: "ATOMS",
    0x18D: "ATOMS", 0x18E: "RED", 0x18F: "CCTL", 0x192: "MEMBAR", 0x1A1: "MATCH", 0x1A6: "REDG",
    0x1A7: "SYNCS", 0x1A8: "ATOMG", 0x1A9: "ATOMG", 0x1AB: "ERRBAR", 0x1AC: "LDCU", 0x1AE: "LDGSTS",
    0x1AF: "LDGDEPBAR", 0x1B2: "SYNCS", 0x1B4: "UTMALDG", 0x1B5: "UTMASTG", 0x1B7: "UTMACMDFLUSH",
    0x1B9: "UTMACCTL", 0x1BA: "UBLKCP", 0x1C3: "S2UR", 0x1C4: "REDUX", 0x1C5: "WARPGROUP", 0x1C6: "FENCE",
    0x1C8: "USETMAXREG", 0x1E3: "UTCATOMSWS", 0x1E9: "UTCBAR", 0x1EA: "UTCHMMA", 0x1EE: "LDTM",
    0x1F0: "HGMMA", 0x1F1: "IGMMA",
}  # fmt: skip
"""Operation numbers to names, as ``nvdisasm`` prints them."""
_LATER = {0x035: "IADD"}
"""Operation numbers with another meaning from sm_100 on."""
_EARLIER = {0x035: "HFMA2"}
"""Meaning of the same numbers before sm_100."""
_NEW_FROM = 100
"""First architecture number with the later meanings and encodings."""
_COPY = "LDGSTS"
_SIZED = frozenset({"LD", "LDG", "LDS", "LDL", "ST", "STG", "STS", "STL"})
"""Loads and stores that encode the bytes each thread moves."""
_BYTES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}
"""Bits 73 to 75 of a load or store to the bytes each thread moves; 0 and 1, and 2 and 3, differ in sign."""
_COPY_BITS = {0: 32, 1: 64, 2: 128}
"""Size field of an asynchronous copy to the bits each thread moves: bits 73 and 74 of the instruction, from
sm_100 on bits 74 and 75."""


def instructions(code: bytes, architecture: str) -> Iterator[tuple[int, str]]:
    """Iterate over offset and name of every instruction except NOPs: ``FFMA``, ``LDG.128``.

    Args:
        code: ``.text`` of a kernel; trailing bytes shorter than an instruction are left out.
        architecture: architecture it was compiled for, ``sm_70`` or later.
    """
    is_new = _number(architecture) >= _NEW_FROM
    names = _NAMES | (_LATER if is_new else _EARLIER)
    whole = len(code) // INSTRUCTION_BYTES * INSTRUCTION_BYTES
    for number, (low, high) in enumerate(struct.iter_unpack("<QQ", code[:whole])):
        name = names.get(low & _OPERATION, OTHER)
        if name == "NOP":
            continue
        bits = 8 * accessed_bytes(high) if name in _SIZED else 0
        if name == _COPY:
            # Bit 73 of the instruction is bit 9 of the upper word.
            bits = _COPY_BITS.get(high >> (10 if is_new else 9) & 3, 0)
        yield number * INSTRUCTION_BYTES, f"{name}.{bits}" if bits else name


def accessed_bytes(high: int) -> int:
    """Return the bytes that each thread moves by a load or store; 0 if unknown.

    `high` is the upper 64 bits of the instruction.
    """
    return _BYTES.get(high >> 9 & 7, 0)


def _number(architecture: str) -> int:
    digits = "".join(mark for mark in architecture if mark.isdigit())
    return int(digits) if digits else 0
