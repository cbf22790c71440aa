"""Operands of every form."""

from cutegen_nb.simulator.ptx.model import Address, Immediate, Register, Symbol, Vector
from cutegen_nb.simulator.ptx.parser import parse

HEAD = ".version 8.8\n.target sm_90a, debug\n.address_size 64\n"


def body_of(text, before=""):
    module = parse(f"{HEAD}{before}\n.visible .entry k(.param .u64 p) {{ .reg .b32 %r<9>; {text} }}")
    return module.kernels["k"].body


def test_operands_of_every_form():
    (item,) = body_of("@!%p1 ld.global.v2.b32 {%r1, _}, [%r2+-16];")
    assert item.name == "ld.global.v2.b32"
    assert item.guard == Register(name="%p1", negated=True)
    assert item.operands == (
        Vector(items=(Register(name="%r1"), Register(name="_"))),
        Address(base=Register(name="%r2"), offset=-16),
    )
    (item,) = body_of("setp.lt.and.f32 %p1|%p2, 0f3F800000, -2, !%p3;")
    assert item.operands[0] == Vector(items=(Register(name="%p1"), Register(name="%p2")))
    assert item.operands[1] == Immediate(value=1.0, bits=0x3F800000)
    assert item.operands[2] == Immediate(value=-2)
    assert item.operands[3] == Register(name="%p3", negated=True)
    (item,) = body_of("mov.b64 %r1, table+8;")
    assert item.operands[1] == Symbol(name="table", offset=8)
