"""Reader of a kernel's resources from a cubin: registers, stack, spills, shared memory.

A cubin is an ELF file. Registers and stack are attribute records in ``.nv.info``; limits and the places of
spilling instructions are records in ``.nv.info.KERNEL``; static shared memory is the size of
``.nv.shared.KERNEL``. NVIDIA does not document the records. Their names and forms are those that ``cuobjdump
-elf`` prints, and the figures were checked against ``cuobjdump -res-usage`` and ``ptxas -v``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from cutegen_nb.analysis.binary.elf import SYMBOLS, ElfSection, sections_of, symbol_name
from cutegen_nb.analysis.binary.machine_code import INSTRUCTION_BYTES, accessed_bytes
from cutegen_nb.analysis.hardware.occupancy import RESERVED_SMEM_BYTES
from cutegen_nb.core.profile import KernelResources

_SIZED = 4
"""Form of an attribute record whose payload follows it; other forms hold the value in the record itself."""
_REGISTERS, _FRAME, _STACK, _MAX_THREADS, _REQUIRED_THREADS, _ANNOTATIONS = 0x2F, 0x11, 0x12, 0x05, 0x10, 0x55
"""Attribute numbers, with the names that ``cuobjdump -elf`` prints without the prefix ``EIATTR_``: REGCOUNT,
FRAME_SIZE, MIN_STACK_SIZE, MAX_THREADS, REQNTID, ANNOTATIONS."""
_SPILL = 1
"""Kind of annotation that marks the instruction at the following offset as a spill or refill."""
_OPCODE = 0xFFF
"""Mask of the operation and its operand form: the low 12 bits of an instruction."""
_LOCAL_LOAD, _LOCAL_STORE = 0x983, 0x387
"""LDL and STL in the low 12 bits of an instruction, from sm_70 to sm_120."""


class BadCubin(ValueError):
    """Bytes that cannot be read as a cubin."""


def resources_of(cubin: bytes, architecture: str) -> dict[str, KernelResources]:
    """Return the resources of every kernel of a cubin, by the kernel's name in the cubin.

    Args:
        cubin: the whole file.
        architecture: architecture it was compiled for; copied into the result.

    Raises:
        BadCubin: the bytes are no 64-bit ELF file, end before a table does, or refer to something missing.
    """
    try:
        sections = sections_of(cubin)
        return {name: _resources(name, sections, architecture) for name in kernels_of(sections)}
    except (struct.error, IndexError, KeyError, UnicodeDecodeError, ValueError) as problem:
        raise BadCubin(
            f"Cannot read the compiler's machine code of {len(cubin)} bytes ({problem!r}); registers, spills "
            "and occupancy stay unknown."
        ) from problem


def kernels_of(sections: list[ElfSection]) -> list[str]:
    """Return the names with an attribute section of their own: kernels, and device functions not inlined."""
    prefix = ".nv.info."
    return [one.name.removeprefix(prefix) for one in sections if one.name.startswith(prefix)]


def _resources(name: str, sections: list[ElfSection], architecture: str) -> KernelResources:
    by_name = {one.name: one for one in sections}
    whole = _by_symbol(by_name[".nv.info"], sections)[name]
    own = dict(_attributes(by_name[f".nv.info.{name}"].data))
    code = by_name[f".text.{name}"].data
    spills = spills_of(name, sections).values()
    return KernelResources(
        architecture=architecture,
        registers=whole[_REGISTERS],
        stack_bytes=max(whole.get(_FRAME, 0), whole.get(_STACK, 0)),
        spill_store_bytes=sum(size for is_store, size in spills if is_store),
        spill_load_bytes=sum(size for is_store, size in spills if not is_store),
        static_smem_bytes=_static_smem(by_name, name),
        constant_bytes=_size(by_name, f".nv.constant0.{name}"),
        max_threads=_threads(own.get(_MAX_THREADS) or own.get(_REQUIRED_THREADS)),
        code_bytes=len(code),
    )


def _size(by_name: dict[str, ElfSection], name: str) -> int:
    return by_name[name].size if name in by_name else 0


def _static_smem(by_name: dict[str, ElfSection], name: str) -> int:
    """Return the bytes of shared memory that the kernel declares.

    From sm_90 on the section's size includes the bytes that the system reserves.
    """
    size = _size(by_name, f".nv.shared.{name}")
    reserved = any(one.startswith(".nv.shared.reserved") for one in by_name)
    return max(0, size - RESERVED_SMEM_BYTES) if reserved else size


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Iterate over a section's attribute numbers with their payloads."""
    at = 0
    while at + 4 <= len(data):
        # A record is form, attribute (a byte each) and a 16-bit value, which is the payload's size in the
        # sized form.
        form, attribute, value = struct.unpack_from("<BBH", data, at)
        at += 4
        size = value if form == _SIZED else 0
        yield attribute, data[at : at + size] if size else data[at - 2 : at]
        at += size


def _by_symbol(info: ElfSection, sections: list[ElfSection]) -> dict[str, dict[int, int]]:
    """Return the module-wide attributes that consist of a function's symbol and a number, by function."""
    symbols = sections[info.link]
    if symbols.kind != SYMBOLS:
        raise BadCubin("attributes without symbols")
    found: dict[str, dict[int, int]] = {}
    for attribute, payload in _attributes(info.data):
        if attribute in {_REGISTERS, _FRAME, _STACK}:
            symbol, value = struct.unpack("<II", payload)
            found.setdefault(symbol_name(symbol, symbols, sections), {})[attribute] = value
    return found


def _threads(payload: bytes | None) -> int:
    if not payload:
        return 0
    x, y, z = struct.unpack("<III", payload)
    return int(x * y * z)


def spills_of(kernel: str, sections: list[ElfSection]) -> dict[int, tuple[bool, int]]:
    """Return the offset of each spill or refill → (True for a store, bytes moved a thread)."""
    by_name = {one.name: one for one in sections}
    annotations = dict(_attributes(by_name[f".nv.info.{kernel}"].data)).get(_ANNOTATIONS, b"")
    code = by_name[f".text.{kernel}"].data
    found: dict[int, tuple[bool, int]] = {}
    for kind, offset in struct.iter_unpack("<II", annotations[: len(annotations) // 8 * 8]):
        if kind != _SPILL or offset % INSTRUCTION_BYTES or offset + INSTRUCTION_BYTES > len(code):
            continue
        low, high = struct.unpack_from("<QQ", code, offset)
        if low & _OPCODE in {_LOCAL_STORE, _LOCAL_LOAD}:
            found[offset] = low & _OPCODE == _LOCAL_STORE, accessed_bytes(high)
    return found
