"""Reports that compute-sanitizer 2025.3 printed on an H200, and spellings of other versions, become records."""

from __future__ import annotations

from pathlib import Path

import pytest

from cutegen_nb.evaluator.timing.kernel_names import is_library_kernel
from cutegen_nb.evaluator.tools.sanitizer_report import RecordKind, read_report

DATA = Path(__file__).parents[1] / "data" / "sanitizer"
KERNEL = "kernel_cutlass_relu_kernel_tensorptrf32gmemo1_tensorptrf32gmemo1__0"


def recorded(name):
    return read_report((DATA / f"{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "kind", "lines", "by", "total"),
    [
        ("memcheck_read", RecordKind.OUT_OF_BOUNDS, [18], ((208, 0, 0), (8, 0, 0)), 1),
        ("memcheck_write", RecordKind.OUT_OF_BOUNDS, [20], ((208, 0, 0), (8, 0, 0)), 1),
        ("memcheck_far", RecordKind.OUT_OF_BOUNDS, [19], ((97, 0, 0), (8, 0, 0)), 1108),
        ("racecheck_race", RecordKind.RACE, [23, 24], (None, None), 1),
        ("initcheck_unwritten", RecordKind.UNINITIALISED, [18], ((96, 0, 0), (8, 0, 0)), 2257),
        ("synccheck_divergent", RecordKind.BARRIER, [23], ((32, 0, 0), (8, 0, 0)), 1300),
    ],
)
def test_a_recorded_finding_has_its_kind_place_thread_and_count(name, kind, lines, by, total):
    report = recorded(name)
    record = report.records[0]
    assert record.kind is kind
    assert [place.line for place in record.places] == lines
    assert all(place.file == "/tmp/kernels/candidate.py" for place in record.places)
    assert all(place.function.startswith("kernel_cutlass_relu_kernel") for place in record.places)
    assert (record.thread, record.block) == by
    assert report.total == total
    assert not record.of_a_library


def test_an_access_tells_how_far_it_is_from_what_memory():
    assert recorded("memcheck_read").records[0].memory == (
        "Access to 0x7fc58e802344 is out of bounds",
        "and is 1 bytes after the nearest allocation at 0x7fc58e800000 of size 9,028 bytes",
    )


def test_a_race_tells_who_read_and_who_wrote():
    assert [place.access for place in recorded("racecheck_race").records[0].places] == ["read", "write"]


@pytest.mark.parametrize("name", ["memcheck_clean", "racecheck_clean"])
def test_a_clean_report_counts_nothing_and_holds_nothing(name):
    report = recorded(name)
    assert (report.records, report.total) == ((), 0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("not_attached", "No attachable process found. compute-sanitizer timed-out."),
        ("no_cuda_call", "Target application terminated before first instrumented API call"),
    ],
)
def test_a_tool_that_saw_nothing_counts_nothing_and_says_why(name, said):
    report = recorded(name)
    assert report.total is None
    assert said in report.complaints[0]


def test_frames_of_the_host_are_no_places():
    record = recorded("memcheck_with_host_frames").records[0]
    assert [(place.function, place.file, place.line) for place in record.places] == [
        (KERNEL, "candidate.py", 18)
    ]


def test_the_spelling_of_older_versions_is_read_too():
    record = read_report(
        "========= Invalid __shared__ read of size 4 bytes\n"
        "=========     at 0x578 in /home/me/candidate.py:120:kernel_cutlass_product(float *, int)\n"
        "=========     by thread (1,2,3) in block (4,5,6)\n"
        "=========     Address 0x41 is misaligned\n"
    ).records[0]
    assert record.kind is RecordKind.MISALIGNED
    place = record.places[0]
    assert (place.function, place.file, place.line) == (
        "kernel_cutlass_product(float *, int)",
        "/home/me/candidate.py",
        120,
    )
    assert (record.thread, record.block) == ((1, 2, 3), (4, 5, 6))


def test_without_line_information_the_kernel_is_still_named():
    place = read_report("========= Barrier error detected. Divergent thread(s) in block\n"
                        "=========     at 0x2c8 in kernel(float *)\n").records[0].places[0]  # fmt: skip
    assert (place.function, place.line) == ("kernel(float *)", 0)


def test_an_inlined_function_keeps_its_callers_behind_it():
    record = read_report(
        "========= Barrier error detected. Invalid arguments.\n"
        "=========     at __syncwarp(unsigned int)+0xe0 in sm_30_intrinsics.hpp:110\n"
        "=========         Device Frame: broken_sync(float *, unsigned long)+0xb0 in /input/candidate.py:12\n"
    ).records[0]
    assert [place.line for place in record.places] == [110, 12]


def test_a_warning_is_told_from_an_error():
    text = (DATA / "racecheck_race.txt").read_text()
    assert not read_report(text).records[0].warning
    assert read_report(text.replace("Error: Race", "Warning: Race")).records[0].warning


@pytest.mark.parametrize("name", ["my_memcpy", "memset_rows", "triton_sum", "at"])
def test_a_candidates_kernel_is_its_own_whatever_its_function_is_called(name):
    assert not is_library_kernel(f"kernel_cutlass_{name}_kernel_tensorptrf32gmem_0")


def test_a_fault_in_pytorchs_own_kernel_is_a_librarys():
    record = read_report(
        "========= Uninitialized __global__ memory read of size 4 bytes\n"
        "=========     at void at::native::vectorized_elementwise_kernel<(int)4, float>(int)+0x130\n"
        "=========     by thread (0,0,0) in block (0,0,0)\n"
    ).records[0]
    assert record.of_a_library


def test_what_the_driver_answered_to_a_probe_is_no_record():
    report = read_report(
        "========= COMPUTE-SANITIZER\n"
        '========= Program hit CUDA_ERROR_INVALID_VALUE (error 1) due to "invalid argument" on CUDA API call to '
        "cuGetProcAddress_v2.\n"
        "=========     Saved host backtrace up to driver entry point at error\n"
        "=========         Host Frame:  [0x10b82] in driver.cpython-312-x86_64-linux-gnu.so\n"
        "========= ERROR SUMMARY: 1 error\n"
    )
    assert not report.records
    assert report.complaints


def test_what_the_program_prints_is_no_report():
    assert read_report("COMPUTE-SANITIZER\nInvalid __global__ read of size 4 bytes\n").records == ()
