"""Pages that ncu prints as CSV, read by their headings."""

import pytest

from cutegen_nb.evaluator.tools.ncu_csv import read_raw, with_source
from cutegen_nb.evaluator.tools.ncu_report import UnreadableReport

RAW = """==PROF== Connected to process 1
"ID","Kernel Name","Block Size","Grid Size","CC","device__attribute_display_name","dram__bytes_read.sum","Note"
"","","","","","","byte",""
"0","add","(256, 1, 1)","(1,024, 2, 1)","9.0","NVIDIA H200","1,048,576","n/a"
"1","mul","(64, 1, 1)","(8, 1, 1)","9.0","NVIDIA H200","n/a",""
"""
SOURCE = """"Kernel Name","add"
"File Path","/home/ada/k.py"
"Line No","Source","Address","Source","# Samples","Address Space","Access Operation","stall_lg","stall_lg (Not Issued)"
"12","y[i] = x[i]","","","","","","",""
"","","0x7f10","LDG.E R2","7","Global","Load","3","1"
"","","0x7f00","MOV R1","1","","","0","0"
"""


def test_a_row_is_a_kernel_with_its_metrics_and_units():
    recorded = read_raw(RAW, tool="Nsight Compute 2025.3")
    assert (recorded.device, recorded.architecture, recorded.tool) == (
        "NVIDIA H200",
        "sm_90",
        "Nsight Compute 2025.3",
    )
    add, mul = recorded.kernels
    assert (add.kernel, add.block) == ("add", (256, 1, 1))
    metric = add.metrics["dram__bytes_read.sum"]
    assert (metric.value, metric.unit) == (1048576.0, "byte")
    assert mul.metrics == {}


def test_instructions_have_their_line_and_offsets_from_the_first():
    add, mul = with_source(read_raw(RAW), SOURCE).kernels
    assert mul.instructions == ()
    first, second = add.instructions
    assert (first.offset, first.text, first.line, first.file) == (0, "MOV R1", 12, "/home/ada/k.py")
    assert second.offset == 16
    assert second.counts["smsp__pcsamp_warps_issue_stalled_lg_throttle"] == 3.0
    assert second.counts["smsp__pcsamp_sample_count"] == 7.0
    assert (second.counts["memory_type"], second.counts["memory_access_type"]) == (4, 2)


@pytest.mark.parametrize("text", ["ncu failed", RAW + '"2","cut"\n'])
def test_what_is_no_table_is_refused_in_a_sentence(text):
    with pytest.raises(UnreadableReport, match="raw page"):
        read_raw(text)
