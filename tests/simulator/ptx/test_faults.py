"""Faults of a launch carry their finding with its line, and never blame a candidate for the simulator."""

import pytest

from cutegen_nb.core.evaluation import NotJudgedReason, Verdict
from cutegen_nb.simulator.ptx import faults
from cutegen_nb.simulator.ptx.parser import parse


@pytest.fixture
def instruction(machine):
    return next(iter(parse(machine.kernel("add.u32 %r1, %r2, %r3;")).kernels.values())).body[0]


def test_the_finding_of_a_fault_has_kind_line_and_thread(instruction):
    fault = faults.OutOfBounds("past the end", instruction, thread=(3, 0, 0), cta=(1, 0, 0))
    found = fault.finding
    assert (found.kind, found.message, found.thread, found.cta) == (
        "out-of-bounds", "past the end", (3, 0, 0), (1, 0, 0),
    )  # fmt: skip
    assert (found.file, found.line) == (instruction.file, instruction.line)
    assert fault.verdict is Verdict.OUT_OF_BOUNDS


def test_a_defect_of_the_simulator_is_not_judged_and_says_whose_fault_it_is(instruction):
    fault = faults.mistake(instruction, IndexError("7"))
    assert fault.verdict is None
    assert fault.not_judged is NotJudgedReason.UNSUPPORTED_OPCODE
    assert "simulator's fault" in str(fault)
    assert "IndexError: 7" in str(fault)


def test_each_fault_leads_to_a_verdict_or_a_reason():
    kinds = [
        one
        for one in vars(faults).values()
        if isinstance(one, type) and issubclass(one, faults.SimulatorFault)
    ]
    judged = [one for one in kinds if one is not faults.SimulatorFault]
    assert len(judged) >= 7
    assert all((one.verdict is None) != (one.not_judged is None) for one in judged)


def test_bytes_and_places_are_told_in_words():
    assert (faults.in_bytes(1), faults.in_bytes(16)) == ("1 byte", "16 bytes")
