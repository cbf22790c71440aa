"""Answers to host code, called through the C types it would use."""

import ctypes

import pytest

from cutegen_nb.simulator.host.runtime import NOT_SUPPORTED, SUCCESS, CudaRuntime, UnansweredCall, UnknownPtx
from cutegen_nb.simulator.state.device import device_facts
from cutegen_nb.simulator.state.launch import INVALID_CONFIGURATION, INVALID_VALUE, Launch

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel_name(.param .u64 first, .param .align 4 .b8 second[12])
{
    ret;
}
"""


USUAL = {"grid": (6, 1, 1), "block": (32, 2, 1), "smem": 64}


class Attribute(ctypes.Structure):
    _fields_ = (("identifier", ctypes.c_uint64), ("value", ctypes.c_uint32 * 16))


class Config(ctypes.Structure):
    _fields_ = (
        ("sizes", ctypes.c_uint32 * 6),
        ("smem", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("count", ctypes.c_uint32),
    )


def caller(calls, text=PTX):
    addresses = calls.addresses(text)

    def call(name, *arguments):
        kinds = [ctypes.c_void_p if not isinstance(value, int) else ctypes.c_int64 for value in arguments]
        return ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(addresses[name])(*arguments)

    return call


def loaded(calls, text=PTX):
    call = caller(calls, text)
    library, kernel = ctypes.c_uint64(), ctypes.c_uint64()
    assert call("_cudaLibraryLoadData", ctypes.byref(library), 0, 0, 0, 0, 0, 0, 0) == SUCCESS
    name = ctypes.create_string_buffer(b"kernel_name")
    assert call("_cudaLibraryGetKernel", ctypes.byref(kernel), library.value, name) == SUCCESS
    return call, kernel.value


def launched(call, kernel, *, attributes=(), **sizes):
    grid, block, smem = (sizes.get(name, usual) for name, usual in USUAL.items())
    array = (Attribute * max(len(attributes), 1))(*attributes)
    config = Config((ctypes.c_uint32 * 6)(*grid, *block), smem, None, array, len(attributes))
    first, second = ctypes.c_uint64(7), (ctypes.c_uint8 * 12)(*range(12))
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(first), ctypes.addressof(second))
    return call("_cudaLaunchKernelEx", ctypes.byref(config), kernel, pointers)


@pytest.fixture
def calls():
    return CudaRuntime(device_facts("sm_90a"))


def test_a_launch_is_recorded_with_its_sizes_cluster_and_copies_of_its_parameters(calls):
    call, kernel = loaded(calls)
    calls.parse_loaded()
    cluster = Attribute(4, (ctypes.c_uint32 * 16)(2, 1, 1))
    other = Attribute(6, (ctypes.c_uint32 * 16)(1))
    assert launched(call, kernel, attributes=(other, cluster)) == SUCCESS
    (item,) = calls.take()
    assert item.launch == Launch(grid=(6, 1, 1), block=(32, 2, 1), dynamic_smem_bytes=64, cluster=(2, 1, 1))
    assert item.parameters == (bytes([7, 0, 0, 0, 0, 0, 0, 0]), bytes(range(12)))
    assert item.kernel in item.module.kernels
    assert calls.take() == ()


def test_the_plain_launch_call_is_recorded_too(calls):
    call, kernel = loaded(calls)
    calls.parse_loaded()
    first, second = ctypes.c_uint64(1), (ctypes.c_uint8 * 12)()
    pointers = (ctypes.c_void_p * 2)(ctypes.addressof(first), ctypes.addressof(second))
    assert call("_cudaLaunchKernel", kernel, 4, 3, 2, 8, 8, 1, pointers, 128, 0) == SUCCESS
    (item,) = calls.take()
    assert item.launch == Launch(grid=(4, 3, 2), block=(8, 8, 1), dynamic_smem_bytes=128, cluster=(1, 1, 1))


def test_two_engines_with_a_kernel_of_the_same_name_stay_apart(calls):
    one, two = loaded(calls), loaded(calls, PTX.replace("second[12]", "second[4]"))
    calls.parse_loaded()
    for call, kernel in (one, two):
        assert launched(call, kernel) == SUCCESS
    assert [len(item.parameters[1]) for item in calls.take()] == [12, 4]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ({"block": (1025, 1, 1)}, INVALID_CONFIGURATION),
        ({"block": (64, 32, 1)}, INVALID_CONFIGURATION),
        ({"block": (1, 1, 65)}, INVALID_CONFIGURATION),
        ({"grid": (0, 1, 1)}, INVALID_CONFIGURATION),
        ({"grid": (1, 65536, 1)}, INVALID_CONFIGURATION),
        ({"smem": 227 * 1024 + 1}, INVALID_VALUE),
        ({"smem": 227 * 1024}, SUCCESS),
        ({"block": (1024, 1, 1)}, SUCCESS),
    ],
)
def test_a_launch_outside_a_gpus_limits_gets_the_error_a_gpu_gives(calls, sizes, expected):
    call, kernel = loaded(calls)
    calls.parse_loaded()
    assert launched(call, kernel, **sizes) == expected
    assert len(calls.take()) == (expected == SUCCESS)


def test_a_call_without_an_answer_names_itself(calls):
    call = caller(calls)
    assert call("_cudaMallocAsync", 0) == NOT_SUPPORTED
    with pytest.raises(UnansweredCall, match=r"cudaMallocAsync.*evaluate on a GPU"):
        calls.raise_refusal()
    calls.clear()
    calls.raise_refusal()


def test_ptx_that_does_not_parse_is_not_judged(calls):
    loaded(calls, ".version 8.0\n.nonsense\n")
    with pytest.raises(UnknownPtx) as caught:
        calls.parse_loaded()
    assert caught.value.verdict is None
    assert caught.value.not_judged is not None


def test_questions_about_the_device_are_answered_from_its_facts(calls):
    call = caller(calls)
    value = ctypes.c_int()
    assert call("_cudaDeviceGetAttribute", ctypes.byref(value), 97, 0) == SUCCESS
    assert value.value == 227 * 1024
    assert call("_cudaDeviceGetAttribute", ctypes.byref(value), 13, 0) == INVALID_VALUE
    shape = (ctypes.byref(value), 0, 256, 100 * 1024)
    assert call("_cudaOccupancyMaxActiveBlocksPerMultiprocessor", *shape) == SUCCESS
    assert value.value == 2


def test_a_fault_of_ours_inside_a_callback_is_a_refusal_and_no_launch_is_lost_in_silence():
    calls = CudaRuntime(device=device_facts("sm_80"))
    answer = calls._guarded(lambda value: {}[value])
    assert answer(3) != 0
    with pytest.raises(UnansweredCall, match="failed at a call of the compiled host code: KeyError: 3"):
        calls.raise_refusal()
    assert len(repr(calls)) < 200
