"""Exceptions that stop a simulated launch; each carries its finding and the verdict it leads to."""

from __future__ import annotations

from cutegen_nb.core.evaluation import NotJudgedReason, Verdict
from cutegen_nb.core.finding import Finding
from cutegen_nb.simulator.ptx.model import Instruction


class SimulatorFault(Exception):
    """Error that ends a launch; its message is that of the finding."""

    kind = "simulator-fault"
    verdict: Verdict | None = None
    """Verdict on the candidate; None if the error is not the candidate's fault."""
    not_judged: NotJudgedReason | None = None
    """Reason why the candidate is not judged; None if there is a verdict."""

    def __init__(
        self,
        message: str,
        instruction: Instruction | None = None,
        *,
        thread: tuple[int, int, int] | None = None,
        cta: tuple[int, int, int] | None = None,
    ) -> None:
        super().__init__(message)
        self.finding = Finding(
            kind=self.kind,
            message=message,
            file=instruction.file if instruction else "",
            line=instruction.line if instruction else 0,
            column=instruction.column if instruction else 0,
            thread=thread,
            cta=cta,
        )
        """Finding with source line, thread and CTA."""


class OutOfBounds(SimulatorFault):
    """Access outside every registered tensor, or outside shared or local memory."""

    kind = "out-of-bounds"
    verdict = Verdict.OUT_OF_BOUNDS


class Misaligned(SimulatorFault):
    """Access whose address is no multiple of its size."""

    kind = "misaligned"
    verdict = Verdict.MISALIGNED


class Deadlock(SimulatorFault):
    """Deadlock: threads wait for others that will never come."""

    kind = "deadlock"
    verdict = Verdict.DEADLOCK


class OutOfTime(SimulatorFault):
    """Timeout: the launch was still running at its deadline."""

    kind = "timed-out"
    verdict = Verdict.TIMED_OUT


class Trapped(SimulatorFault):
    """Trap: the kernel executed ``trap`` or failed a device assertion."""

    kind = "trap"
    verdict = Verdict.CRASHED


class BadLaunch(SimulatorFault):
    """Launch that a GPU refuses: too many threads, parameters that do not fit the kernel."""

    kind = "bad-launch"
    verdict = Verdict.CRASHED


class UnsupportedOpcode(SimulatorFault):
    """Instruction, or modifier of one, that the simulator does not support."""

    kind = "unsupported-opcode"
    not_judged = NotJudgedReason.UNSUPPORTED_OPCODE


class SimulatorMistake(UnsupportedOpcode):
    """Failure of the simulator itself at an instruction; never the candidate's fault."""

    kind = "simulator-mistake"


SIMULATOR_DEFECTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that mean a defect of the simulator, where operations raise them."""


def mistake(instruction: Instruction | None, problem: Exception) -> SimulatorMistake:
    """Fault of an instruction at which the simulator itself failed."""
    where = (
        f"{instruction.name!r}, PTX line {instruction.ptx_line}, {place(instruction)}" if instruction else "?"
    )
    return SimulatorMistake(
        f"The simulator failed at PTX instruction {where}: {type(problem).__name__}: {problem}. This is the "
        "simulator's fault, not the kernel's; write it another way, or run on a GPU.",
        instruction,
    )


def unsupported(instruction: Instruction, why: str = "") -> UnsupportedOpcode:
    """Fault of an instruction that the simulator does not support; ``why`` goes into the message."""
    reason = f" ({why})" if why else ""
    return UnsupportedOpcode(
        f"The simulator does not know PTX instruction {instruction.name!r}{reason}, PTX line "
        f"{instruction.ptx_line}, {place(instruction)}. Write it another way, or run on a GPU.",
        instruction,
    )


def in_bytes(number: int) -> str:
    """Number of bytes as text, for messages."""
    return "1 byte" if number == 1 else f"{number} bytes"


def place(instruction: Instruction) -> str:
    """Text ``from file:line`` with the Python source of an instruction, for messages."""
    if not instruction.line:
        return "from no known line of Python"
    name = instruction.file.replace("\\", "/").rsplit("/", 1)[-1] or "?"
    return f"from {name}:{instruction.line}"
