"""The PTX parser: what it reads, and that what it cannot read it says."""

import random
import struct

import pytest

from cutegen_nb.simulator.ptx.model import Register
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.ptx.tokens import PtxSyntaxError

HEAD = ".version 8.8\n.target sm_90a, debug\n.address_size 64\n"


def body_of(text, before=""):
    module = parse(f"{HEAD}{before}\n.visible .entry k(.param .u64 p) {{ .reg .b32 %r<9>; {text} }}")
    return module.kernels["k"].body


def test_parameters_lie_on_their_natural_alignment():
    text = (
        HEAD
        + ".entry k(.param .u8 a, .param .align 16 .b8 b[40], .param .u32 c, .param .u64 .ptr .global .align 4 d){ret;}"
    )
    kernel = parse(text).kernels["k"]
    assert [(one.name, one.offset_bytes, one.size_bytes) for one in kernel.parameters] == [
        ("a", 0, 1), ("b", 16, 40), ("c", 56, 4), ("d", 64, 8),
    ]  # fmt: skip
    assert (kernel.architecture, kernel.target) == ("sm_90a", "sm_90a")


def test_variables_keep_their_first_values():
    module = parse(HEAD + ".global .align 8 .b8 t[4] = {1, 2, 255, 0}; .const .f32 c[2] = {0f3F800000, 2.0};")
    assert [(one.space, one.size_bytes, one.initial) for one in module.variables] == [
        ("global", 4, b"\x01\x02\xff\x00"), ("const", 8, b"\x00\x00\x80\x3f\x00\x00\x00\x40"),
    ]  # fmt: skip


def test_a_first_value_is_written_in_the_format_of_its_type():
    module = parse(
        HEAD + ".global .f16 h = 1.5; .global .f64 d = 0f3F800000; .global .f32 s = 0d3FF0000000000000;"
    )
    assert [one.initial for one in module.variables] == [
        struct.pack("<e", 1.5), struct.pack("<d", 1.0), struct.pack("<f", 1.0),
    ]  # fmt: skip


def test_first_values_tell_the_size_of_an_array_without_bounds_and_must_fit_one_with_bounds():
    module = parse(HEAD + ".global .b32 t[] = {1, 2, 3}; .extern .shared .b8 tile[];")
    assert [one.size_bytes for one in module.variables] == [12, 0]
    with pytest.raises(PtxSyntaxError, match="12 bytes of initial values for t, which has 8"):
        parse(HEAD + ".global .b32 t[2] = {1, 2, 3};")


def test_the_elements_of_a_vector_register_are_registers():
    body = body_of(
        "{ .reg .v4 .b32 all; mov.b32 all.y, %r1; st.shared.v4.b32 [%r2], all; } .reg .v2 .f32 two; mov.f32 two.x, 0f0;"
    )
    whole = body[1].operands[1]
    assert [one.name.split("$")[0].rsplit(".", 1)[-1][0] for one in whole.items] == ["x", "y", "z", "w"]
    assert body[0].operands[0] == whole.items[1]
    assert body[2].operands[0] == Register(name="two.x")


def test_an_operation_whose_place_the_compiler_lost_keeps_the_line_before_it():
    body = body_of(
        ".loc 1 15 30 \n mov.b32 %r1, 1;\n.loc 1 53 0 \n mov.b32 %r2, 1;\n.loc 1 16 8 \n mov.b32 %r3, 1;\n"
    )
    assert [one.line for one in body][:3] == [15, 15, 16]


def test_location_prefers_the_innermost_line_outside_libraries():
    text = (
        ".loc 2 7 1 \n mov.b32 %r1, 1;\n"
        ".loc 1 50 3, function_name $L__info_string0, inlined_at 2 7 1 \n mov.b32 %r2, 1;\n"
        ".loc 2 90 5, function_name $L__info_string0, inlined_at 2 7 1 \n mov.b32 %r3, 1;\n"
    )
    module = parse(
        f"{HEAD}.visible .entry k() {{ .reg .b32 %r<9>; {text} }}\n"
        '.file 1 "/usr/lib/python3.11/site-packages/lib.py"\n.file 2 "/home/me/candidate.py"\n'
    )
    places = [(one.file, one.line) for one in module.kernels["k"].body]
    assert places == [
        ("/home/me/candidate.py", 7),
        ("/home/me/candidate.py", 7),
        ("/home/me/candidate.py", 90),
    ]


def test_comments_pragmas_and_debug_sections_are_passed_over():
    text = (
        HEAD
        + '/* a { */ .pragma "nounroll"; // }\n.entry k(){ .pragma "x"; ret; }\n.section .debug_str { .b8 1,2 }'
    )
    assert len(parse(text).kernels["k"].body) == 1


def complaint_of(text):
    """Complaint of the parser about a text; empty where it reads it."""
    try:
        parse(text)
    except PtxSyntaxError as problem:
        return str(problem)
    return ""


def test_mutated_texts_never_break_the_parser_in_another_way(machine):
    texts = [path.read_text()[:6000] for path in sorted(machine.data.glob("*.ptx"))[:4]]
    chance = random.Random(0)
    complaints = []
    for _ in range(300):
        text = chance.choice(texts)
        for _ in range(chance.randint(1, 6)):
            at = chance.randrange(len(text))
            letter = chance.choice("{}[](),;:@!%.$\"'0x7f\n\\é ")
            text = text[:at] + letter + text[at + chance.randint(0, 4) :]
        complaints.append(complaint_of(text))
    assert sum(map(bool, complaints)) > 100
    assert all(not one or one.startswith("PTX line ") for one in complaints)


def test_numbered_registers_of_inline_assembly_are_registers_without_a_percent_sign():
    mov = body_of(".reg .b64 desc_<2>; mov.b64 desc_1, {%r1, 0x40004040};")[0]
    assert mov.operands[0] == Register(name="desc_1")
