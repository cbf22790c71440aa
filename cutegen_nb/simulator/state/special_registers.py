"""PTX special registers: their values for a batch of CTAs (PTX ISA, "Special Registers")."""

from __future__ import annotations

import numpy as np

from cutegen_nb.simulator.numbers.values import U32, Array, Value
from cutegen_nb.simulator.state.batch import Batch

_AXES = {"x": 0, "y": 1, "z": 2}


def special_value(name: str, lanes: Batch) -> Value:
    """Return the value of a special register at the start of a batch.

    Clock registers are 0 here: ``mov`` reads them itself.

    Raises:
        KeyError: the register is not known.
    """
    cluster = lanes.cluster
    register, _, axis = name.partition(".")
    if axis:
        return _component(register, _AXES[axis], lanes)
    lane = lanes.lane_of_thread.astype(U32)[None]
    if register == "%laneid":
        return lane
    if register == "%warpid":
        return lanes.warp_of_thread.astype(U32)[None]
    if register.startswith("%lanemask_"):
        return _lane_mask(register.removeprefix("%lanemask_"), lane)
    if register == "%smid":
        return _column(lanes.cta_numbers % lanes.sms)
    if register == "%cluster_ctarank":
        # rank = x + y * cluster.x + z * cluster.x * cluster.y, in Horner's form; x, y, z within the cluster
        rank = np.zeros((1, 1), np.int64)
        for index in (2, 1, 0):
            rank = rank * cluster[index] + np.asarray(_cta(index, lanes), np.int64) % cluster[index]
        return _column(np.broadcast_to(rank, (lanes.ctas, 1)).ravel())
    if register in {"%clock64", "%globaltimer"}:
        return np.uint64(0)
    return np.uint32(
        {
            "%nwarpid": lanes.warps_per_cta, "%nsmid": lanes.sms, "%gridid": 0, "%clock_hi": 0,
            "%clock": 0, "%globaltimer_lo": 0, "%globaltimer_hi": 0,
            "%cluster_nctarank": cluster[0] * cluster[1] * cluster[2],
            "%is_explicit_cluster": int(cluster != (1, 1, 1)), "%dynamic_smem_size": lanes.dynamic_smem_bytes,
            "%total_smem_size": lanes.shared_limit, "%reserved_smem_offset_begin": 0,
        }[register]
    )  # fmt: skip


def _component(register: str, index: int, lanes: Batch) -> Value:
    cluster = lanes.cluster
    if register == "%tid":
        return _thread(index, lanes)
    if register == "%ctaid":
        return _cta(index, lanes)
    if register == "%ntid":
        return np.uint32(lanes.block[index])
    if register == "%nctaid":
        return np.uint32(lanes.grid[index])
    if register == "%cluster_nctaid":
        return np.uint32(cluster[index])
    if register == "%nclusterid":
        return np.uint32(lanes.grid[index] // cluster[index])
    own = _cta(index, lanes)
    if register == "%cluster_ctaid":
        return np.remainder(own, np.uint32(cluster[index]))
    if register == "%clusterid":
        return np.floor_divide(own, np.uint32(cluster[index]))
    raise KeyError(register)


def _thread(index: int, lanes: Batch) -> Value:
    if lanes.block[index] == 1:
        return np.uint32(0)
    # x runs fastest: tid.y = thread / ntid.x % ntid.y.
    before = int(np.prod(lanes.block[:index], dtype=np.int64))
    return (np.arange(lanes.threads) // before % lanes.block[index]).astype(U32)[None]


def _cta(index: int, lanes: Batch) -> Value:
    if lanes.grid[index] == 1:
        return np.uint32(0)
    before = int(np.prod(lanes.grid[:index], dtype=np.int64))
    return _column(lanes.cta_numbers // before % lanes.grid[index])


def _column(numbers: Array) -> Value:
    """Column of one number per CTA; a scalar if all are equal, so that derived values stay uniform too."""
    if (numbers == numbers[0]).all():
        return np.uint32(numbers[0])
    return numbers.astype(U32)[:, None]


def _lane_mask(name: str, lane: Array) -> Value:
    # Bits of the lanes equal to, below, up to, above, and from the thread's own lane.
    one = np.uint32(1) << lane
    below = one - np.uint32(1)
    masks = {"eq": one, "lt": below, "le": below | one, "gt": ~(below | one), "ge": ~below}
    return masks[name]
