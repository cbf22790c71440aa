"""CUDA runtime functions for the host code of compiled programs, as ctypes callbacks.

The DSL compiles the host half of a program to CPU code that calls the CUDA runtime by the symbol names below
(``nm -u`` on the dumped object). A launch is recorded with copies of its parameters. No kernel runs inside a
callback, because an exception cannot leave one: :meth:`HostCalls.take` returns the recorded launches after
the host code has returned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from cutegen_nb.analysis.binary.cubin import BadCubin, resources_of
from cutegen_nb.analysis.hardware.occupancy import occupancy
from cutegen_nb.core.evaluation import NotJudgedReason
from cutegen_nb.core.profile import KernelResources
from cutegen_nb.simulator.host.runtime_symbols import REFUSED_NAMES, SUCCEEDING_NAMES
from cutegen_nb.simulator.host.tensor_maps import TILED_MAP_ARGUMENTS, tiled_map
from cutegen_nb.simulator.ptx import parser
from cutegen_nb.simulator.ptx.faults import SIMULATOR_DEFECTS, SimulatorFault
from cutegen_nb.simulator.state.device import DeviceFacts
from cutegen_nb.simulator.state.launch import INVALID_VALUE, Launch, refusal
from cutegen_nb.simulator.state.tensor_map import MAP_BYTES, UnknownTensorMap
from cutegen_nb.simulator.state.tensor_map_encoding import InvalidTensorMap

# Values of ``cudaError_t`` (CUDA runtime API, "Data types used by CUDA Runtime").
SUCCESS = 0
INVALID_RESOURCE_HANDLE = 400
NOT_FOUND = 500
NOT_SUPPORTED = 801

_COOPERATIVE = 2  # cudaLaunchAttributeCooperative
_CLUSTER_DIMENSION = 4  # cudaLaunchAttributeClusterDimension
_FIRST_HANDLE = 0x1000

_INT = ctypes.c_int
_UINT = ctypes.c_uint
_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_size_t


class UnansweredCall(SimulatorFault):
    """Call of a CUDA function that the simulator does not implement, by the program or its host code."""

    kind = "unanswered-call"
    not_judged = NotJudgedReason.UNSUPPORTED_OPCODE


class UnknownPtx(SimulatorFault):
    """PTX from the compiler that the parser does not know."""

    kind = "unknown-ptx"
    not_judged = NotJudgedReason.UNSUPPORTED_OPCODE


class _LaunchAttribute(ctypes.Structure):
    """``cudaLaunchAttribute``: an identifier and a union of 64 bytes."""

    _fields_ = (("identifier", _UINT), ("padding", _UINT), ("value", ctypes.c_uint32 * 16))


class _LaunchConfig(ctypes.Structure):
    """``cudaLaunchConfig_t`` (CUDA runtime API, data structures)."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_smem_bytes", _SIZE),
        ("stream", _POINTER),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("attribute_count", _UINT),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedLaunch:
    """Launch that host code asked for, not yet executed."""

    module: parser.Module
    """Parsed PTX module that holds the kernel."""
    kernel: str
    """Name of the kernel in the module."""
    launch: Launch
    """Grid, block, dynamic shared memory, cluster."""
    parameters: tuple[bytes, ...]
    """Copies of the kernel's parameters at the call, in order."""
    resources: KernelResources | None = None
    """Registers and memory that the compiler gave the kernel; None where the cubin could not be read."""
    cubin: bytes = b""
    """Machine code of the module; empty where the compiler left none."""
    text: str = ""
    """PTX of the module."""


@dataclass(slots=True)
class _Library:
    """Module loaded by host code with ``cudaLibraryLoadData``."""

    text: str
    """PTX of the module."""
    resources: dict[str, KernelResources]
    """Registers and memory of each kernel, by name."""
    cubin: bytes
    """Machine code of the module."""
    module: parser.Module | None = None
    """Parsed PTX; None until a call of a compiled function is about to run."""


@dataclass(slots=True, repr=False)
class CudaRuntime:
    """CUDA runtime for the host code of every compiled function of this process."""

    device: DeviceFacts
    """Sizes and limits of the simulated device."""
    refused: list[str] = field(default_factory=list)
    """Messages of launches refused with an error code, as a GPU does, since :meth:`clear`."""
    _refusals: list[str] = field(default_factory=list)
    _libraries: dict[int, _Library] = field(default_factory=dict)
    _kernels: dict[int, tuple[_Library, str]] = field(default_factory=dict)
    _launches: list[RecordedLaunch] = field(default_factory=list)
    _callbacks: list[object] = field(default_factory=list)
    _shared: dict[str, int] = field(default_factory=dict)

    def addresses(self, text: str, cubin: bytes = b"") -> dict[str, int]:
        """Return the address of a callback for each symbol that host code may call.

        ``text`` and ``cubin`` are the PTX and the machine code of the engine's module. Each engine gets its
        own ``_cudaLibraryLoadData``, so that two compilations whose kernels share a name stay apart. The
        callbacks stay alive as long as this object.
        """
        if not self._shared:
            refused = {name: (_function(), self._refusal(name)) for name in REFUSED_NAMES}
            answers = {**refused, **self._answers()}
            self._shared.update({name: self._keep(kind, call) for name, (kind, call) in answers.items()})

        resources = _resources(cubin, self.device.architecture)

        def load(library: int, *_: object) -> int:
            handle = _FIRST_HANDLE + len(self._libraries)
            self._libraries[handle] = _Library(text, resources, cubin)
            _write(library, handle, ctypes.c_uint64)
            return SUCCESS

        kind = _function(_POINTER, _POINTER, _POINTER, _POINTER, _UINT, _POINTER, _POINTER, _UINT)
        return {**self._shared, "_cudaLibraryLoadData": self._keep(kind, load)}

    def parse_loaded(self) -> None:
        """Parse the PTX of every library loaded since the last call.

        Raises:
            SimulatorFault: the parser does not know the PTX.
        """
        for library in self._libraries.values():
            if library.module is None:
                library.module = _parsed(library.text)

    def raise_refusal(self) -> None:
        """Raise a fault for the first unanswered call since the last :meth:`clear`, if there was one.

        Raises:
            SimulatorFault: a call could not be answered.
        """
        if self._refusals:
            raise UnansweredCall(self._refusals[0])

    def clear(self) -> None:
        """Forget recorded launches, unanswered calls and refused launches."""
        self._launches.clear()
        self._refusals.clear()
        self.refused.clear()

    def take(self) -> tuple[RecordedLaunch, ...]:
        """Return and forget the launches recorded since the last call, in order."""
        launches = tuple(self._launches)
        self._launches.clear()
        return launches

    def _keep(self, kind: Callable[[Callable[..., int]], object], call: Callable[..., int]) -> int:
        callback = kind(self._guarded(call))
        self._callbacks.append(callback)
        address = ctypes.cast(callback, _POINTER).value  # type: ignore[arg-type]
        if address is None:
            raise ValueError(f"ctypes gave no address for {call!r}")
        return address

    def _guarded(self, call: Callable[..., int]) -> Callable[..., int]:
        """Wrap a callback so that an internal error is recorded: an exception cannot leave a callback."""

        def answer(*arguments: int) -> int:
            try:
                return call(*arguments)
            except SIMULATOR_DEFECTS as problem:
                self._refusals.append(
                    f"The simulator failed at a call of the compiled host code: {type(problem).__name__}: "
                    f"{problem}. This is the simulator's fault; run on a GPU, and please report it."
                )
                return NOT_SUPPORTED

        return answer

    def _refusal(self, name: str) -> Callable[[], int]:
        def refuse() -> int:
            self._refusals.append(_unanswered_sentence(f"The compiled host code called {name.lstrip('_')}"))
            return NOT_SUPPORTED

        return refuse

    def _answers(self) -> dict[str, tuple[Callable[[Callable[..., int]], object], Callable[..., int]]]:
        succeed = (_function(), lambda: SUCCESS)
        return {
            "_cudaLibraryGetKernel": (_function(_POINTER, _POINTER, _POINTER), self._get_kernel),
            "_cudaLaunchKernelEx": (_function(_POINTER, _POINTER, _POINTER), self._launch_extended),
            "_cudaLaunchKernel": (
                _function(_POINTER, *[_UINT] * 6, _POINTER, _SIZE, _POINTER),
                self._launch_plain,
            ),
            "_cudaDeviceGetAttribute": (_function(_POINTER, _INT, _INT), self._device_attribute),
            "_cuKernelGetAttribute": (_function(_POINTER, _INT, _POINTER, _INT), _write_zero),
            "_cudaOccupancyMaxActiveBlocksPerMultiprocessor": (
                _function(_POINTER, _POINTER, _INT, _SIZE),
                self._occupancy,
            ),
            "_cuTensorMapEncodeTiled": (TILED_MAP_ARGUMENTS, self._encode_map),
            "_cudaGetDevice": (_function(_POINTER), _write_zero),
            "_cuDeviceGet": (_function(_POINTER, _INT), _write_zero),
            "_cudaGetDeviceCount": (_function(_POINTER), lambda count: _write(count, 1, _INT)),
            "cuda_dialect_print_on_error": (_function(_INT), self._check),
            "cuda_dialect_assert_success": (_function(_INT), self._check),
            **dict.fromkeys(SUCCEEDING_NAMES, succeed),
        }

    def _encode_map(self, place: int, *fields: int) -> int:
        try:
            ctypes.memmove(place, tiled_map(*fields).encoded(), MAP_BYTES)
        except InvalidTensorMap:
            return INVALID_VALUE
        except UnknownTensorMap as problem:
            what = f"The compiled host code called cuTensorMapEncodeTiled for a map whose {problem}"
            self._refusals.append(_unanswered_sentence(what))
            return NOT_SUPPORTED
        return SUCCESS

    def _check(self, code: int) -> int:
        """Record an error code that host code checks itself; a GPU's runtime would print it or abort."""
        if code != SUCCESS:
            self._refusals.append(
                f"The compiled host code met CUDA error {code}; look at its launch configuration."
            )
        return code

    def _get_kernel(self, kernel: int, library: int, name: int) -> int:
        owner = self._libraries.get(library)
        if owner is None:
            return INVALID_RESOURCE_HANDLE
        text = ctypes.string_at(name).decode(errors="replace")
        handle = (_FIRST_HANDLE << 16) + len(self._kernels)
        self._kernels[handle] = (owner, text)
        return _write(kernel, handle, ctypes.c_uint64)

    def _device_attribute(self, value: int, number: int, _device: int) -> int:
        answer = self.device.attribute(number)
        return INVALID_VALUE if answer is None else _write(value, answer, _INT)

    def _occupancy(self, value: int, kernel: int, threads: int, smem_bytes: int) -> int:
        library, name = self._kernels.get(kernel, (None, ""))
        resources = library.resources.get(name) if library is not None else None
        registers, static = (resources.registers, resources.static_smem_bytes) if resources else (0, 0)
        found = occupancy(
            self.device.architecture, threads=threads, registers=registers, smem_bytes=static + smem_bytes
        )
        return _write(value, found.active_ctas, _INT)

    def _launch_extended(self, config: int, kernel: int, arguments: int) -> int:
        decoded = _LaunchConfig.from_address(config)
        attributes = [decoded.attributes[index] for index in range(decoded.attribute_count)]
        clusters = [item.value for item in attributes if item.identifier == _CLUSTER_DIMENSION]
        cooperative = any(item.identifier == _COOPERATIVE and item.value[0] for item in attributes)
        return self._record(
            Launch(
                grid=_three(decoded.grid),
                block=_three(decoded.block),
                dynamic_smem_bytes=int(decoded.dynamic_smem_bytes),
                cluster=_three(clusters[0][:3]) if clusters else (1, 1, 1),
                cooperative=cooperative,
            ),
            kernel,
            arguments,
        )

    def _launch_plain(self, kernel: int, *sizes: int) -> int:
        *dimensions, arguments, smem_bytes, _stream = sizes
        launch = Launch(
            grid=_three(dimensions[:3]),
            block=_three(dimensions[3:]),
            dynamic_smem_bytes=smem_bytes,
            cluster=(1, 1, 1),
        )
        return self._record(launch, kernel, arguments)

    def _record(self, launch: Launch, kernel: int, arguments: int) -> int:
        if self._refusals:  # what an unanswered call was to give may be missing here
            return NOT_SUPPORTED
        library, name = self._kernels.get(kernel, (None, ""))
        if library is None:
            return INVALID_RESOURCE_HANDLE
        if library.module is None or name not in library.module.kernels:
            self._refusals.append(
                f"The kernel {name!r} was launched on a path that the simulator does not follow "
                "(TVM-FFI or a precompiled object); compile with cute.compile and call the result."
            )
            return NOT_FOUND
        resources = library.resources.get(name)
        launch = replace(launch, registers=resources.registers if resources else 0)
        refused = refusal(library.module.kernels[name], launch, self.device)
        if refused is not None:
            self.refused.append(refused.message)
            return refused.code
        declared = library.module.kernels[name].parameters
        # ``kernelParams``: an array of pointers, one to each parameter's value.
        pointers = (ctypes.c_uint64 * len(declared)).from_address(arguments) if declared else ()
        parameters = tuple(
            ctypes.string_at(pointer, parameter.size_bytes)
            for pointer, parameter in zip(pointers, declared, strict=True)
        )
        self._launches.append(
            RecordedLaunch(
                module=library.module, kernel=name, launch=launch, parameters=parameters,
                resources=resources, cubin=library.cubin, text=library.text,
            )
        )  # fmt: skip
        return SUCCESS


unanswered_calls: list[UnansweredCall] = []
"""Faults of calls of this process, in order, whether or not the program caught them."""


def unanswered(what: str) -> UnansweredCall:
    """Return the fault for an unanswered call; ``what`` is a clause such as ``The program called x``."""
    return noted(UnansweredCall(_unanswered_sentence(what)))


def noted(fault: UnansweredCall) -> UnansweredCall:
    """Return the fault, after adding it to :data:`unanswered_calls`."""
    unanswered_calls.append(fault)
    return fault


def _unanswered_sentence(what: str) -> str:
    return (
        f"{what}, which the simulator does not answer; launch kernels on torch tensors instead, "
        "or evaluate on a GPU."
    )


def _parsed(text: str) -> parser.Module:
    try:
        return parser.parse(text)
    except parser.PtxSyntaxError as error:
        raise UnknownPtx(f"{error} Write it another way, or run on a GPU.") from error


def _resources(cubin: bytes, architecture: str) -> dict[str, KernelResources]:
    """Registers and memory of each kernel in a cubin, by name; empty where the cubin cannot be read."""
    if not cubin:
        return {}
    try:
        return resources_of(cubin, architecture)
    except BadCubin:  # a later compiler's format; counts and results do not depend on it
        return {}


def _function(*arguments: type) -> Callable[[Callable[..., int]], object]:
    """C type of a callback that returns an error code."""
    return ctypes.CFUNCTYPE(_INT, *arguments)


def _write(address: int, value: int, kind: type[ctypes.c_int | ctypes.c_uint64]) -> int:
    kind.from_address(address).value = value
    return SUCCESS


def _write_zero(address: int, *_: object) -> int:
    return _write(address, 0, _INT)


def _three(values: Sequence[int] | ctypes.Array[ctypes.c_uint32]) -> tuple[int, int, int]:
    return int(values[0]), int(values[1]), int(values[2])
