"""Records of a GPU host become the data that other tests compare with."""

import io
import json
import lzma
import sys

import adopt
import numpy as np
import pytest

MACHINE = {"device": "NVIDIA H200", "driver": "570.1", "date": "2026-11-21"}
PAGE = """==PROF== Connected to process 7
"ID","Kernel Name","l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum","smsp__inst_executed.sum","gpc__cycles_elapsed.max"
"","","","inst","cycle"
"0","kernel_cutlass_traffic_kernel_tensorptri32gmemalign16o41_load_stride_1_0","1,024","2048.5","77"
"1","void at::native::fill","5","6","7"
"2","kernel_cutlass_relu_kernel_tensorptrf32_0","8","n/a","9"
"""
MORE = """"ID","Kernel Name","l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
"","","sector"
"0","kernel_cutlass_traffic_kernel_tensorptri32gmemalign16o41_load_stride_1_0","4096"
"""


@pytest.fixture
def recorded(tmp_path):
    """Folder as ``record.py`` and ``nsight.py`` leave it."""
    record = {
        "machine": MACHINE,
        "cases": {"add.f32": "digest one", "sub.f32": "digest two"},
        "failures": {"mul.f32": "Traceback\nRuntimeError: no such instruction"},
    }
    (tmp_path / "results.json").write_text(json.dumps(record))
    np.savez(tmp_path / "results.npz", case0=np.arange(5), case1=np.zeros(3, np.float16))
    pages = {"groups": {"global": {"csv": PAGE, "more_csv": MORE}}}
    (tmp_path / "nsight.json").write_text(json.dumps(pages))
    return tmp_path


@pytest.fixture
def adopted(recorded, monkeypatch, capsys):
    """Folder of the adopted data, and what was printed."""
    data = recorded / "data"
    monkeypatch.setattr(adopt, "DATA", data)
    monkeypatch.setattr(sys, "argv", ["adopt.py", str(recorded)])
    assert adopt.main() == 0
    return data, capsys.readouterr().out


def test_cases_and_values_are_kept_with_the_machine_and_no_failure(adopted):
    data, _ = adopted
    kept = json.loads((data / "h200.json").read_text())
    assert kept == {"machine": MACHINE, "cases": {"add.f32": "digest one", "sub.f32": "digest two"}}
    with np.load(io.BytesIO(lzma.decompress((data / "h200.npz.xz").read_bytes()))) as values:
        assert values["case0"].tolist() == [0, 1, 2, 3, 4]
        assert values["case1"].dtype == np.float16


def test_a_case_that_was_not_recorded_is_named(adopted):
    assert adopted[1].splitlines() == [
        "NOT RECORDED mul.f32: RuntimeError: no such instruction",
        "2 kernels with counters",
    ]


def test_counters_of_our_kernels_are_kept_by_name_and_metric(adopted):
    kept = json.loads((adopted[0] / "h200_counters.json").read_text())
    rows = {
        name: {metric: value for metric, value in zip(kept["metrics"], row, strict=True) if value is not None}
        for name, row in kept["kernels"].items()
    }
    assert kept["machine"] == MACHINE
    assert rows == {
        "load_stride_1": {
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld": 1024,
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld": 4096,
            "smsp__inst_executed": 2048.5,
        },
        "relu": {"l1tex__t_requests_pipe_lsu_mem_global_op_ld": 8},
    }


def test_without_counters_those_of_before_stay(recorded, monkeypatch):
    data = recorded / "data"
    data.mkdir()
    (data / "h200_counters.json").write_text("before")
    (recorded / "nsight.json").unlink()
    monkeypatch.setattr(adopt, "DATA", data)
    monkeypatch.setattr(sys, "argv", ["adopt.py", str(recorded)])
    adopt.main()
    assert (data / "h200_counters.json").read_text() == "before"


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (
            "kernel_cutlass_traffic_kernel_tensorptri32gmemalign16o41_shared_load_stride_1_0",
            "shared_load_stride_1",
        ),
        ("kernel_cutlass_traffic_kernel_tensorptri32gmemalign16o41_load_stride_16_0", "load_stride_16"),
        ("kernel_cutlass_relu_kernel_tensorptrf32_0", "relu"),
        ("kernel_cutlass_traffic_kernel_of_no_known_pattern", ""),
        ("at::native::fill", ""),
    ],
)
def test_a_pattern_is_found_by_its_kernels_name(kernel, name):
    assert adopt.pattern_of(kernel) == name
