"""Inner blocks of a PTX function have names of their own."""

from cutegen_nb.simulator.ptx.parser import parse

HEAD = ".version 8.8\n.target sm_90a, debug\n.address_size 64\n"


def body_of(text, before=""):
    module = parse(f"{HEAD}{before}\n.visible .entry k(.param .u64 p) {{ .reg .b32 %r<9>; {text} }}")
    return module.kernels["k"].body


def test_inner_blocks_have_names_of_their_own():
    body = body_of(
        "mov.b32 %r1, 1; { .reg .b32 t; mov.b32 t, %r1; } { .reg .b32 t; add.s32 t, t, 1; L: bra L; }"
    )
    assert body[1].operands[0].name != body[2].operands[0].name
    assert body[3].operands[0].name.startswith("L")
