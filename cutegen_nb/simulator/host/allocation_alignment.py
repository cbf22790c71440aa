"""Alignment of torch's CPU allocations to 512 bytes, that of its CUDA allocator.

torch asks the C library for CPU memory that is aligned to 64 bytes. A kernel compiled for a pointer aligned
to 128 or 256 bytes, which every CUDA tensor has, would refuse such a tensor. Here torch's reference to
``posix_memalign`` is pointed at a small native function that asks for 512 bytes instead.
"""

from __future__ import annotations

import ctypes
import mmap
import re
import struct
from pathlib import Path

import torch

from cutegen_nb.analysis.binary.elf import RELOCATIONS, sections_of, symbol_name

ALIGNMENT_BYTES = 512
"""Alignment of every allocation of torch on a GPU (``kMinBlockSize`` of its caching allocator)."""
_LIBRARY = "libc10.so"
_FUNCTION = "posix_memalign"
_RELOCATION = struct.Struct("<QQq")  # r_offset, r_info, r_addend
_PROGRAM = f"""
llvm.func @{_FUNCTION}(!llvm.ptr, i64, i64) -> i32
llvm.func @aligned(%result: !llvm.ptr, %alignment: i64, %size: i64) -> i32 {{
  %wanted = llvm.mlir.constant({ALIGNMENT_BYTES} : i64) : i64
  %code = llvm.call @{_FUNCTION}(%result, %wanted, %size) : (!llvm.ptr, i64, i64) -> i32
  llvm.return %code : i32
}}
"""
_kept: list[object] = []


def align_allocations() -> bool:
    """Align what torch allocates on the CPU from now on; return whether this torch build allows it.

    Imports the DSL, whose compiler makes the native function. Memory allocated before stays as it is.
    """
    if _kept:
        return True
    try:
        slot = _slot()
        function = _native_function()
    except (OSError, ValueError, LookupError, RuntimeError, AttributeError, struct.error):
        return False  # another build of torch or of the DSL: tensors keep their 64 bytes
    before = ctypes.c_uint64.from_address(slot).value
    _write(slot, function)
    # Larger than what the C library keeps at hand, so that the allocation is made now.
    if torch.empty(100_003, dtype=torch.uint8).data_ptr() % ALIGNMENT_BYTES:
        _write(slot, before)
        return False
    return True


def _slot() -> int:
    """Address of the pointer through which torch's allocator calls ``posix_memalign``."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        found = re.match(r"([0-9a-f]+)-\S+ \S+ 0+ \S+ \S+\s+(\S.*)", line)
        if found and Path(found[2]).name == _LIBRARY:
            return int(found[1], 16) + _offset(Path(found[2]).read_bytes())
    raise LookupError(_LIBRARY)


def _offset(file: bytes) -> int:
    sections = sections_of(file)
    for section in sections:
        if section.kind == RELOCATIONS and section.link:
            for offset, info, _ in _RELOCATION.iter_unpack(section.data):
                if info >> 32 and symbol_name(info >> 32, sections[section.link], sections) == _FUNCTION:
                    return int(offset)
    raise LookupError(_FUNCTION)


def _native_function() -> int:
    from cutlass._mlir import ir
    from cutlass._mlir._mlir_libs._cutlass_ir import _aot_support
    from cutlass._mlir._mlir_libs._cutlass_ir._execution_engine import BinaryExecutionEngine

    with ir.Context():
        code = _aot_support.export_module_to_bytes(
            ir.Module.parse(_PROGRAM), format="o", opt_level=2, enable_pic=True
        )
    engine = BinaryExecutionEngine(code, [], True)
    _kept.append(engine)  # it holds the function
    return int(engine.lookup("aligned"))


def _write(address: int, value: int) -> None:
    page = address // mmap.PAGESIZE * mmap.PAGESIZE
    if ctypes.CDLL(None).mprotect(ctypes.c_void_p(page), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE):
        raise OSError(f"memory at {page:#x} cannot be written")
    ctypes.c_uint64.from_address(address).value = value
