"""Loads from and stores to shared memory, and the count of its wavefronts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cutegen_nb.simulator.checkers.shared_entries import SharedAccess
from cutegen_nb.simulator.counters.counters import InstructionTally
from cutegen_nb.simulator.numbers.values import Array, Value
from cutegen_nb.simulator.ops.memory.global_ import fitted
from cutegen_nb.simulator.ptx.faults import in_bytes
from cutegen_nb.simulator.ptx.model import Instruction
from cutegen_nb.simulator.state import addressing
from cutegen_nb.simulator.state.access_patterns import Runs, runs_of
from cutegen_nb.simulator.state.addressing import (
    AddressOperand,
    ListedAddresses,
    SeparableAddresses,
    listed,
    listed_of,
    split,
)
from cutegen_nb.simulator.state.banks import BankRule, cta_wavefronts, service_of, wavefronts
from cutegen_nb.simulator.state.batch import Batch, Mask
from cutegen_nb.simulator.state.global_memory import UNSIGNED

_SHORT_RUN = 8
"""Length in elements below which runs are gathered, as in ``global_``."""
_FEW = 8
"""Addresses a CTA up to which short runs are copied too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedAccessForm:
    """Form of a shared, local or parameter access without its addresses: sizes, direction, tally."""

    instruction: Instruction
    """Instruction, for messages."""
    tally: InstructionTally
    """Tally in which the access is counted."""
    width: int
    """Bytes of an element."""
    count: int
    """Elements a thread, without those of ``surplus``."""
    surplus: int = 0
    """Elements after those that the instruction loads too and no instruction reads."""
    stores: bool = False
    """True if the instruction writes."""

    @property
    def size(self) -> int:
        """Bytes a thread."""
        return self.width * (self.count + self.surplus)

    @property
    def needed(self) -> int:
        """Bytes a thread that have to lie in the memory."""
        return self.width * self.count


def load(lanes: Batch, mask: Mask | None, at: AddressOperand, form: SharedAccessForm) -> list[Value]:
    """Load elements of each CTA's own shared memory, as unsigned bits; unspecified in inactive lanes.

    Raises:
        OutOfBounds: an address outside the CTA's shared memory.
        Misaligned: an address that is no multiple of the size.
    """
    one_by_one = admit(lanes, mask, at, form)
    watch = lanes.watch
    if watch is not None:
        watch.read(lanes, mask, _access(one_by_one, form, "reads"))
    if isinstance(one_by_one, SeparableAddresses):
        return [_read(lanes, one_by_one, form, index) for index in range(form.count)]
    words = lanes.shared.view(UNSIGNED[form.width]).reshape(-1)
    first = _flat_index(lanes, one_by_one, form)
    results = []
    for index in range(form.count):
        data = words[first + index]
        if one_by_one.lanes is not None:
            spread = np.zeros(lanes.lane_count, data.dtype)
            spread[one_by_one.lanes] = data
            data = spread
        results.append(data.reshape(lanes.ctas, lanes.threads))
    return results


def store(
    lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value], form: SharedAccessForm
) -> None:
    """Store elements, given as unsigned bits, to each CTA's own shared memory.

    Raises:
        OutOfBounds: an address outside the CTA's shared memory.
        Misaligned: an address that is no multiple of the size.
    """
    request = admit(lanes, mask, at, form)
    watch = lanes.watch
    if watch is None:
        _store(lanes, request, data, form)
        return
    access = _access(request, form, "writes", data)
    look = watch.write(lanes, mask, access)
    _store(lanes, request, data, form)
    if look:
        watch.wrote(lanes, access)


def _store(
    lanes: Batch, request: SeparableAddresses | ListedAddresses, data: list[Value], form: SharedAccessForm
) -> None:
    if isinstance(request, SeparableAddresses):
        for index, one in enumerate(data):
            _write(lanes, request, form, index, one)
        return
    words = lanes.shared.view(UNSIGNED[form.width]).reshape(-1)
    first = _flat_index(lanes, request, form)
    for index, one in enumerate(data):
        flat = np.broadcast_to(one, (lanes.ctas, lanes.threads)).reshape(-1)
        words[first + index] = flat if request.lanes is None else flat[request.lanes]


def admit(
    lanes: Batch, mask: Mask | None, at: AddressOperand, form: SharedAccessForm
) -> SeparableAddresses | ListedAddresses:
    """Check and count a request; the result is separable where every CTA uses the same addresses.

    Raises:
        OutOfBounds: an address outside the CTA's shared memory.
        Misaligned: an address that is no multiple of the size.
    """
    request = split(mask, at)
    if request is not None and len(request.column) == 1 and len(request.row):
        _check(lanes, request, form)
        _count_split(lanes, mask, request, form)
        return request
    return checked(lanes, mask, at, form)


def announce(
    lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value], form: SharedAccessForm
) -> None:
    """Check and count an asynchronous store when it is issued.

    Raises:
        OutOfBounds: an address outside the CTA's shared memory.
        Misaligned: an address that is no multiple of the size.
    """
    request = admit(lanes, mask, at, form)
    if lanes.watch is not None:
        lanes.watch.copy_begun(lanes, _access(request, form, "overwrites", data))


def land(
    lanes: Batch, mask: Mask | None, at: AddressOperand, data: list[Value], form: SharedAccessForm
) -> None:
    """Carry out an asynchronous store that was announced, for all or some of its lanes."""
    apart = split(mask, at)
    request = apart if apart is not None and len(apart.column) == 1 else listed(lanes, mask, at)
    if lanes.watch is not None:
        lanes.watch.write(lanes, mask, _access(request, form, "writes", data))
    _store(lanes, request, data, form)


def report_access(
    lanes: Batch, mask: Mask | None, request: SeparableAddresses | ListedAddresses, form: SharedAccessForm
) -> None:
    """Report to the race checker an admitted request that is carried out elsewhere: a load or an atomic."""
    if lanes.watch is None:
        return
    if form.stores:
        lanes.watch.update(lanes, mask, _access(request, form, "updates"))
    else:
        lanes.watch.read(lanes, mask, _access(request, form, "reads"))


def _access(
    request: SeparableAddresses | ListedAddresses,
    form: SharedAccessForm,
    verb: str,
    data: list[Value] | None = None,
) -> SharedAccess:
    return SharedAccess(form.instruction, request, form.width, form.count, verb, data)


def checked(lanes: Batch, mask: Mask | None, at: AddressOperand, form: SharedAccessForm) -> ListedAddresses:
    """Check and count a request address by address.

    Raises:
        OutOfBounds: an address outside the CTA's shared memory.
        Misaligned: an address that is no multiple of the size.
    """
    request = listed(lanes, mask, at)
    _check_listed(lanes, request, form)
    where = request.lanes
    warps = lanes.warp_of_lane if where is None else lanes.warp_of_lane[where]
    threads = np.arange(lanes.lane_count) if where is None else where
    lane = lanes.lane_of_thread[threads % lanes.threads]
    requests = lanes.warps if mask is None else mask.warps
    passes = wavefronts(request.addresses, warps, lane, form.size, _service(form))
    _add(form, requests, len(request.addresses), passes)
    return request


def flat_addresses(lanes: Batch, request: ListedAddresses) -> Array:
    """Byte offset of each address in the shared memory of the whole batch: CTA × bytes of a CTA + address."""
    threads = np.arange(lanes.lane_count) if request.lanes is None else request.lanes
    return threads // lanes.threads * lanes.shared.shape[1] + request.addresses


def _flat_index(lanes: Batch, request: ListedAddresses, form: SharedAccessForm) -> Array:
    return flat_addresses(lanes, request) // form.width


def _check(lanes: Batch, request: SeparableAddresses, form: SharedAccessForm) -> None:
    # The bounds of all addresses at once; only a fault looks for the thread to name.
    inside = request.low() >= 0 and request.high() + form.needed <= lanes.shared_limit
    if not inside or not request.all_aligned(form.size):
        _check_listed(lanes, listed_of(lanes, request), form)


def _check_listed(lanes: Batch, request: ListedAddresses, form: SharedAccessForm) -> None:
    limit = lanes.shared_limit
    outside = (request.addresses < 0) | (request.addresses + form.needed > limit)
    if outside.any():
        position = int(np.flatnonzero(outside)[0])
        verb = "writes" if form.stores else "reads"
        addressing.raise_outside(
            lanes, request.lane(position), form.instruction,
            f"{verb} {in_bytes(form.size)} at byte {int(request.addresses[position])} of shared memory, of "
            f"which the CTA has {limit} bytes",
        )  # fmt: skip
    if (request.addresses & (form.size - 1)).any():
        addressing.raise_misaligned(lanes, request, form.size, form.instruction, "in shared memory")


# -- data ----------------------------------------------------------------------------------------------------
def _runs(request: SeparableAddresses) -> Runs | None:
    row = runs_of(request.row)
    if row is None or (row.inner < _SHORT_RUN and len(request.row) > _FEW):
        return None
    return row


def _view(lanes: Batch, request: SeparableAddresses, row: Runs, form: SharedAccessForm, index: int) -> Array:
    first = int(request.column[0]) + row.first + index * form.width
    return np.ndarray(
        (lanes.ctas, row.outer, row.inner), UNSIGNED[form.width], lanes.shared.data, first,
        (lanes.shared.shape[1], row.outer_step, row.inner_step),
    )  # fmt: skip


def _read(lanes: Batch, request: SeparableAddresses, form: SharedAccessForm, index: int) -> Value:
    row = _runs(request)
    if row is not None:
        data = _view(lanes, request, row, form, index).copy().reshape(lanes.ctas, len(request.row))
    else:
        words = lanes.shared.view(UNSIGNED[form.width])
        data = words.take((request.row + int(request.column[0])) // form.width + index, axis=1)
    if request.active is None or len(request.row) == 1:
        return data
    spread = np.zeros((lanes.ctas, lanes.threads), data.dtype)
    spread[:, request.active] = data
    return spread


def _write(
    lanes: Batch, request: SeparableAddresses, form: SharedAccessForm, index: int, data: Value
) -> None:
    if data.ndim and data.shape[0] > 1:
        # Each CTA writes its own memory, so the single column stands for all of them.
        request = SeparableAddresses(
            np.broadcast_to(request.column, (lanes.ctas,)), request.row, request.active
        )
    data = fitted(request, data)
    row = _runs(request)
    shape = (lanes.ctas, len(request.row))
    if row is not None:
        view = _view(lanes, request, row, form, index)
        view[...] = np.broadcast_to(data, shape).reshape(view.shape)
        return
    words = lanes.shared.view(UNSIGNED[form.width])
    place = (request.row + int(request.column[0])) // form.width + index
    # A flat index over the whole batch is six times as fast as an index over the second axis.
    starts = np.arange(lanes.ctas)[:, None] * words.shape[1]
    words.reshape(-1)[starts + place] = np.broadcast_to(data, shape)


# -- counts --------------------------------------------------------------------------------------------------
def _count_split(
    lanes: Batch, mask: Mask | None, request: SeparableAddresses, form: SharedAccessForm
) -> None:
    threads = np.arange(lanes.threads) if request.active is None else request.active
    row = request.row if len(request.row) > 1 else np.broadcast_to(request.row, threads.shape)
    # Every CTA uses the same addresses, so one is counted and multiplied.
    passes, ideal = cta_wavefronts(
        row + int(request.column[0]), lanes.warp_of_thread[threads], lanes.lane_of_thread[threads], form.size,
        _service(form),
    )  # fmt: skip
    requests = lanes.warps if mask is None else mask.warps
    _add(form, requests, len(threads) * lanes.ctas, (passes * lanes.ctas, ideal * lanes.ctas))


def _service(form: SharedAccessForm) -> BankRule:
    tally = form.tally
    if tally.service is None:
        tally.service = service_of(form.instruction)
    return tally.service


def _add(form: SharedAccessForm, requests: int, threads: int, passes: tuple[int, int]) -> None:
    tally = form.tally
    tally.shared_requests += requests
    if form.stores:
        tally.shared_stored += threads * form.size
    else:
        tally.shared_loaded += threads * form.size
    tally.wavefronts += passes[0]
    tally.shared_ideal += passes[1]
