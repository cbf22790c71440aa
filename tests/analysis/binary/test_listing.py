"""Listings of compiled kernels, against the simulator's parser and the output of nvdisasm."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from cutegen_nb.analysis.binary.debug_lines import LineTable
from cutegen_nb.analysis.binary.listing import KernelCode, listings_of, printed_rows, ptx_rows
from cutegen_nb.core.compiled.listing import MOST_ROWS, UNCOUNTED, CodeRow
from cutegen_nb.simulator.ptx.parser import parse

DATA = Path(__file__).parents[2] / "simulator" / "data"
TWO_KERNELS = """
.version 8.8
.target sm_80
.address_size 64
.extern .func  (.param .b32 func_retval0) vprintf
(
	.param .b64 vprintf_param_0
)
;
.visible .entry first(
	.param .b64 first_param_0
)
{
	.reg .b32 	%r<9>;
	.local .align 4 .b8 	__local_depot0[4];
	.loc	1 7 4
	mov.b32 	%r1, 1; // seven
	.loc	2 90 2, function_name $L__info0, inlined_at 1 9 4
	add.s32 	%r2, %r1, %r1;
	// begin inline asm
	.loc	1 1 3
	{ .reg .b32 t; mov.b32 t, %r2; }
	// end inline asm
	{ // callseq 0, 0
	call.uni (retval0),
	vprintf,
	(
	param0
	);
	} // callseq 0
$L__BB0_2:
	ret;
}
.visible .entry second()
{
	.loc	1 20 1
	ret;
}
	.file	1 "/home/ada/candidate.py"
	.file	2 "/usr/lib/python3/site-packages/cutlass/cute.py"
	.section	.debug_str
	{
$L__info0:
.b8 102
.b8 0
	}
"""
"""A module with a library's line, inline assembly, a call over several lines and debug information."""
PRINTED = """
	.headerflags	@"EF_CUDA_SM80"
	.section	.text.other,"ax",@progbits
        /*0000*/                   EXIT ;
	.section	.text.kernel,"ax",@progbits
        .size           kernel,(.L_x_3 - kernel)
.text.kernel:
        /*0000*/                   S2R R0, SR_TID.X ;
.L_x_1:
        /*0010*/              @P0  LDG.E R2, [R2.64] ;
        /*0020*/                   STL [R1+0x110], R18                     (*"SpillRefill"*);
        /*0030*/                   BRA `(.L_x_1) ;
        /*0040*/                   NOP;
"""
"""Form of what nvdisasm 13 prints."""


@pytest.mark.parametrize("path", sorted(DATA.glob("*.ptx")), ids=lambda path: path.stem)
def test_each_instruction_stands_in_one_row_with_the_line_that_the_simulator_counts_it_by(path):
    text = path.read_text()
    for name, kernel in parse(text).kernels.items():
        body = {item.ptx_line: item for item in kernel.body}
        rows = ptx_rows(text, name, dict.fromkeys(body, 5))
        ran = [row for row in rows if row.executions == 5]
        assert Counter(row.line for row in ran) == Counter(item.line for item in body.values())
        assert [row.text.split()[0].startswith("@") for row in ran] == [
            body[line].guard is not None for line in sorted(body)
        ]
        assert not any(row.text.lstrip().startswith((".loc ", ".file")) for row in rows)


def test_a_listing_has_one_kernel_without_debug_information():
    lines = [line.strip() for line in TWO_KERNELS.split("\n")]
    ran = {
        1 + lines.index(text): 4 for text in ("mov.b32 	%r1, 1; // seven", "add.s32 	%r2, %r1, %r1;")
    }
    rows = ptx_rows(TWO_KERNELS, "first", ran)
    assert [row.text for row in rows] == [
        ".visible .entry first(",
        "    .param .b64 first_param_0",
        ")",
        "{",
        "    .reg .b32 %r<9>;",
        "    .local .align 4 .b8 __local_depot0[4];",
        "    mov.b32 %r1, 1;",
        "    add.s32 %r2, %r1, %r1;",
        "    { .reg .b32 t; mov.b32 t, %r2; }",
        "    {",
        "    call.uni (retval0),",
        "    vprintf,",
        "    (",
        "    param0",
        "    );",
        "    }",
        "$L__BB0_2:",
        "    ret;",
        "}",
    ]
    shown = {row.text.strip(): (row.line, row.executions) for row in rows}
    assert shown["mov.b32 %r1, 1;"] == (7, 4)
    assert shown["add.s32 %r2, %r1, %r1;"] == (9, 4)  # the line of the candidate that calls the library
    assert shown["{ .reg .b32 t; mov.b32 t, %r2; }"] == (9, 0)  # its own line is one of the assembly
    assert shown["call.uni (retval0),"] == (9, 0)
    assert shown["vprintf,"] == (9, UNCOUNTED)
    assert shown["$L__BB0_2:"] == (0, UNCOUNTED)
    assert {row.executions for row in ptx_rows(TWO_KERNELS, "first")} == {UNCOUNTED}


def test_machine_code_is_read_from_what_nvdisasm_prints():
    table = LineTable(offsets=(0x0, 0x10, 0x30), places=(("k.py", 3), ("k.py", 5), ("site-packages/c.py", 8)))
    assert printed_rows(PRINTED, "kernel", table) == [
        CodeRow("    /*0000*/ S2R R0, SR_TID.X", 3),
        CodeRow(".L_x_1:"),
        CodeRow("    /*0010*/ @P0 LDG.E R2, [R2.64]", 5),
        CodeRow('    /*0020*/ STL [R1+0x110], R18 (*"SpillRefill"*)', 5),
        CodeRow("    /*0030*/ BRA `(.L_x_1)"),
    ]
    assert printed_rows("", "kernel", table) == []


def test_without_nvdisasm_the_names_of_the_instructions_are_shown_and_it_is_said_why():
    code = KernelCode(kernel="kernel", ptx="", cubin=(DATA / "spills.sm_80.cubin").read_bytes())
    (_, sass) = listings_of([code], "sm_80", lambda _: "")
    assert sass.language == "SASS"
    assert "pip install nvidia-cuda-nvdisasm" in sass.note
    assert sass.rows()[5] == CodeRow("    /*0050*/ LDG.32")
    (_, broken) = listings_of([KernelCode(kernel="kernel", ptx="", cubin=b"no")], "sm_80", lambda _: "")
    assert (broken.rows(), broken.note) == ((), "The machine code of this kernel could not be read.")


def test_the_code_of_an_evaluation_is_bounded_and_it_is_said_what_is_left_out():
    body = "\n".join(f"	add.s32 %r{index}, %r1, %r2;" for index in range(MOST_ROWS))
    codes = [KernelCode(kernel=name, ptx=f".entry {name}()\n{{\n{body}\n}}\n") for name in ("a", "b")]
    first, second = listings_of(codes, "sm_80", lambda _: "")
    assert (len(first.rows()), len(second.rows())) == (MOST_ROWS, 0)
    assert "is kept up to 40,000 lines" in first.note
    assert "is kept up to 40,000 lines" in second.note
