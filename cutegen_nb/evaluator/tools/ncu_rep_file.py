"""Reader of ``.ncu-rep`` files with the standard library alone, without NVIDIA's tools.

NVIDIA publishes the format as ``extras/FileFormat/*.proto`` with every Nsight Compute. A file holds the
letters NVR, a header, then blocks. Each block has a protocol-buffer header and a payload of sources (machine
code) and results (kernels). Field numbers below are those of the ``.proto`` files. Unknown fields are
skipped, as protocol buffers intend.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from cutegen_nb.analysis.binary.cubin import BadCubin, resources_of
from cutegen_nb.analysis.binary.debug_lines import BadLineTable, LineTable, lines_of
from cutegen_nb.analysis.binary.sass import code_of_cubin
from cutegen_nb.core.profile import CompiledCode, KernelResources, Metric
from cutegen_nb.evaluator.tools.ncu_report import (
    Recorded,
    RecordedInstruction,
    RecordedKernel,
    UnreadableReport,
)

_MAGIC = b"NVR\0"
"""First bytes of a report file."""
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types of protocol buffers."""

# Field numbers of BlockHeader: counts of sources and results, session, strings, bytes of payload
_SOURCES, _RESULTS, _SESSION, _STRINGS, _PAYLOAD = 1, 2, 3, 4, 5
# ReportSessionDetails
_CREATED, _DEVICES, _VERSIONS, _COMMAND = 2, 6, 8, 11
# ProfileSource
_SOURCE_ID, _CUBIN, _FUNCTIONS = 1, 4, 9
# ProfileResult
_MANGLED, _GRID, _BLOCK, _METRICS, _RESULT_SOURCE = 5, 10, 11, 13, 15
# ProfileMetricResult
_NAME, _VALUE, _INSTANCES = 1, 2, 3
# ProfileMetricValue: text, float, double, 32 and 64 bits unsigned
_FLOAT, _DOUBLE, _UINT32, _UINT64 = 2, 3, 4, 5

_PER_INSTRUCTION = (
    "inst_executed", "thread_inst_executed", "thread_inst_executed_true", "memory_",
    "smsp__pcsamp_", "smsp__branch_targets_threads_divergent", "group:",
)  # fmt: skip
"""Prefixes of the metrics whose instances are instructions; others have instances by time or by pass."""

Fields = dict[int, list[int | bytes]]
"""Values of a protocol-buffer message by field number; a repeated field has several."""


@dataclass(slots=True)
class _Container:
    """Parts of all blocks of a file, by kind."""

    sources: list[bytes] = field(default_factory=list)
    results: list[bytes] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    sessions: list[bytes] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Code:
    """Machine code that kernels were launched from."""

    tables: dict[str, LineTable]
    begins: dict[str, int]
    """Address of each function in the device's memory, by its name."""
    cubin: bytes
    """Contents of the cubin with the functions; empty where the report has none."""


def read_report(path: Path) -> Recorded:
    """Read the kernels of a report file.

    Raises:
        UnreadableReport: the file is no report, ends early, or has another layout.
        OSError: the file cannot be opened.
    """
    data = path.read_bytes()
    if data[:4] != _MAGIC:
        raise UnreadableReport(f"{path.name} is no report of Nsight Compute: it does not begin with NVR.")
    try:
        return _recorded(_blocks(data))
    except (struct.error, IndexError, KeyError, ValueError, OverflowError) as problem:
        raise UnreadableReport(
            f"{path.name} cannot be read ({problem!r}): it ends early, or a newer Nsight Compute wrote it."
        ) from problem


def _blocks(data: bytes) -> _Container:
    """Read all blocks of a file. Lengths are 32-bit little-endian and precede the parts that they measure."""
    (size,) = struct.unpack_from("<I", data, 4)
    at, found = 8 + size, _Container()
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        header = _fields(data[at + 4 : at + 4 + size])
        at += 4 + size
        found.strings += [_text(one) for one in _fields(_one(header, _STRINGS)).get(1, [])]
        found.sessions += [one for one in header.get(_SESSION, []) if isinstance(one, bytes)]
        inside = at
        for kept, count in (
            (found.sources, _number(header, _SOURCES)),
            (found.results, _number(header, _RESULTS)),
        ):
            for _ in range(count):
                (size,) = struct.unpack_from("<I", data, inside)
                if inside + 4 + size > len(data):
                    raise UnreadableReport("its last block is cut off")
                kept.append(data[inside + 4 : inside + 4 + size])
                inside += 4 + size
        at += _number(header, _PAYLOAD)
    if at > len(data):
        raise UnreadableReport("it ends before its own lengths say")
    return found


def _recorded(container: _Container) -> Recorded:
    codes = dict(_code(one) for one in container.sources)
    session = _session(container.sessions)
    kernels = tuple(_kernel(one, container.strings, codes) for one in container.results)
    architecture = _architecture(kernels)
    return Recorded(
        kernels=_compiled(kernels, container.results, codes, architecture),
        device=session["device"],
        architecture=architecture,
        tool=session["tool"],
        driver=session["driver"],
        date=session["date"],
        command=session["command"],
    )


def _session(parts: list[bytes]) -> dict[str, str]:
    told = dict.fromkeys(("device", "tool", "driver", "date", "command"), "")
    for part in parts:
        found = _fields(part)
        for device in found.get(_DEVICES, []):
            told["device"] = told["device"] or _text(_one(_fields(device), 2))
        for version in found.get(_VERSIONS, []):
            entry = _fields(version)
            name, value = _text(_one(entry, 1)), _text(_one(entry, 2))
            if name == "CUDA Version":
                told["driver"] = f"CUDA {value}"
            elif name.startswith("Nsight Compute"):
                told["tool"] = f"Nsight Compute {value.partition(' ')[0]}"
        if _COMMAND in found:
            told["command"] = _text(_one(found, _COMMAND))
        created = _number(found, _CREATED)
        if created:
            told["date"] = time.strftime("%Y-%m-%d", time.gmtime(created))
    return told


def _architecture(kernels: tuple[RecordedKernel, ...]) -> str:
    for kernel in kernels:
        major = kernel.metrics.get("device__attribute_compute_capability_major")
        minor = kernel.metrics.get("device__attribute_compute_capability_minor")
        if major and minor:
            return f"sm_{major.value:.0f}{minor.value:.0f}"
    return ""


def _code(source: bytes) -> tuple[int, _Code]:
    found = _fields(source)
    cubin = _one(found, _CUBIN)
    try:
        tables = lines_of(cubin) if cubin else {}
    except BadLineTable:
        tables = {}
    begins: dict[str, int] = {}
    for listed in found.get(_FUNCTIONS, []):
        for function in _fields(listed).get(1, []):
            entry = _fields(function)
            begins[_text(_one(entry, 1))] = _number(entry, 2)
    return _number(found, _SOURCE_ID), _Code(tables=tables, begins=begins, cubin=cubin)


def _kernel(result: bytes, strings: list[str], codes: dict[int, _Code]) -> RecordedKernel:
    found = _fields(result)
    name = _text(_one(found, _MANGLED))
    metrics: dict[str, Metric] = {}
    by_address: dict[int, dict[str, float]] = {}
    for one in found.get(_METRICS, []):
        entry = _fields(one)
        metric = strings[_number(entry, _NAME)]
        value = _value(_one(entry, _VALUE)) if _VALUE in entry else None
        if value is not None:
            metrics[metric] = Metric(value=value)
        if _INSTANCES in entry and metric.startswith(_PER_INSTRUCTION):
            for address, amount in _instances(entry[_INSTANCES]):
                by_address.setdefault(address, {})[metric] = amount
    return RecordedKernel(
        kernel=name,
        grid=_extent(_one(found, _GRID)),
        block=_extent(_one(found, _BLOCK)),
        metrics=metrics,
        instructions=_instructions(by_address, name, codes.get(_source(found))),
    )


def _compiled(
    kernels: tuple[RecordedKernel, ...], results: list[bytes], codes: dict[int, _Code], architecture: str
) -> tuple[RecordedKernel, ...]:
    """Add the machine code to kernels; it is read once, however often a kernel was launched."""
    known: dict[tuple[int, str], tuple[CompiledCode | None, KernelResources | None]] = {}
    made = []
    for kernel, result in zip(kernels, results, strict=True):
        source = _source(_fields(result))
        key = source, kernel.kernel
        if key not in known:
            known[key] = _read(codes.get(source), kernel.kernel, architecture)
        code, resources = known[key]
        made.append(replace(kernel, code=code, resources=resources))
    return tuple(made)


def _read(
    code: _Code | None, name: str, architecture: str
) -> tuple[CompiledCode | None, KernelResources | None]:
    """Read instructions and resources from the cubin; None where the report has none or it is unreadable."""
    if code is None or not code.cubin or not architecture:
        return None, None
    try:
        return code_of_cubin(code.cubin, name, architecture), resources_of(code.cubin, architecture).get(name)
    except BadCubin:  # of an architecture that this version does not know
        return None, None


def _source(result: Fields) -> int:
    """Number of the source that holds a kernel's code."""
    return _number(_fields(_one(result, _RESULT_SOURCE)), 1)


def _instructions(
    by_address: dict[int, dict[str, float]], name: str, code: _Code | None
) -> tuple[RecordedInstruction, ...]:
    begin = (code.begins.get(name) if code else None) or min(by_address, default=0)
    table = code.tables.get(name) if code else None
    found = []
    for address in sorted(by_address):
        file, line = table.at(address - begin) if table else ("", 0)
        found.append(
            RecordedInstruction(offset=address - begin, file=file, line=line, counts=by_address[address])
        )
    return tuple(found)


def _instances(entries: list[int | bytes]) -> Iterator[tuple[int, float]]:
    """Addresses of instructions, each with the metric's value there."""
    for one in entries:
        entry = _fields(one)
        address, amount = _value(_one(entry, 1)), _value(_one(entry, 2))
        if address is not None and amount is not None:
            yield int(address), amount


def _extent(message: bytes) -> tuple[int, int, int]:
    found = _fields(message)
    return _number(found, 1), _number(found, 2), _number(found, 3)


def _value(message: bytes) -> float | None:
    """Value of a ProfileMetricValue as a number; None for text and for an empty message."""
    for tag, value in _fields(message).items():
        first = value[0]
        if tag in {_UINT32, _UINT64} and isinstance(first, int):
            # A float64 holds integers exactly up to 2⁵³; larger ones (addresses) stay integers.
            return float(first) if first < 1 << 53 else first
        if tag == _DOUBLE and isinstance(first, bytes):
            return float(struct.unpack("<d", first)[0])
        if tag == _FLOAT and isinstance(first, bytes):
            return float(struct.unpack("<f", first)[0])
    return None


# -- protocol buffers ----------------------------------------------------------------------------------------
def _fields(message: int | bytes) -> Fields:
    """Decode the fields of a message by number; fixed-width numbers stay bytes."""
    found: Fields = {}
    at = 0
    if isinstance(message, int):
        raise UnreadableReport("a number where a message belongs")
    while at < len(message):
        key, at = _varint(message, at)
        form = key & 7  # a key is field number << 3 | wire type
        value: int | bytes
        if form == _VARINT:
            value, at = _varint(message, at)
        elif form in {_FIXED64, _FIXED32}:
            size = 8 if form == _FIXED64 else 4
            value, at = message[at : at + size], at + size
        elif form == _BYTES:
            size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            raise UnreadableReport(f"a field of form {form}")
        if at > len(message):
            raise UnreadableReport("a field that is cut off")
        found.setdefault(key >> 3, []).append(value)
    return found


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Decode a base-128 varint at `at`, least significant group first; also return where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the high bit says that another byte follows
            return value, at
        shift += 7


def _one(found: Fields, number: int) -> bytes:
    """Return a field's first value as bytes; empty where the field is absent or a number."""
    value = found.get(number, [b""])[0]
    return value if isinstance(value, bytes) else b""


def _number(found: Fields, number: int) -> int:
    value = found.get(number, [0])[0]
    return value if isinstance(value, int) else 0


def _text(value: int | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
