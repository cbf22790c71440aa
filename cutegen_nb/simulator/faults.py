"""What stops a simulated launch: each fault carries the finding and the verdict it leads to."""

from __future__ import annotations

from cutegen_nb.core.evaluation import Finding, NotJudgedReason, Verdict
from cutegen_nb.simulator.ptx_model import Instruction


class SimulatorFault(Exception):
    """A launch cannot go on. The message is the finding's."""

    kind = "simulator-fault"
    verdict: Verdict | None = None
    """What the candidate's fault is; None when it is not the candidate's."""
    not_judged: NotJudgedReason | None = None
    """Why nothing can be said of the candidate; None when there is a verdict."""

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
        """The fact, with line, thread and CTA."""


class OutOfBounds(SimulatorFault):
    """An access outside every registered tensor, or outside shared or local memory."""

    kind = "out-of-bounds"
    verdict = Verdict.OUT_OF_BOUNDS


class Misaligned(SimulatorFault):
    """An access whose address is no multiple of its width."""

    kind = "misaligned"
    verdict = Verdict.MISALIGNED


class Deadlock(SimulatorFault):
    """Threads wait for others that will never come."""

    kind = "deadlock"
    verdict = Verdict.DEADLOCK


class OutOfTime(SimulatorFault):
    """The launch was still running when its time was up."""

    kind = "timed-out"
    verdict = Verdict.TIMED_OUT


class Trapped(SimulatorFault):
    """The kernel executed ``trap`` or a failing device assertion."""

    kind = "trap"
    verdict = Verdict.CRASHED


class BadLaunch(SimulatorFault):
    """A launch that a GPU refuses: too many threads, parameters that do not fit the kernel."""

    kind = "bad-launch"
    verdict = Verdict.CRASHED


class UnsupportedOpcode(SimulatorFault):
    """The machine does not know this instruction or a modifier of it."""

    kind = "unsupported-opcode"
    not_judged = NotJudgedReason.UNSUPPORTED_OPCODE


class SimulatorMistake(UnsupportedOpcode):
    """The machine itself failed at an instruction; never the candidate's guilt."""

    kind = "simulator-mistake"


MISTAKES = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What the machine raises where it has a fault of its own."""


def mistake(instruction: Instruction | None, problem: Exception) -> SimulatorMistake:
    """The fault for an instruction at which the machine itself failed."""
    where = (
        f"{instruction.name!r}, PTX line {instruction.ptx_line}, {place(instruction)}" if instruction else "?"
    )
    return SimulatorMistake(
        f"The simulator failed at PTX instruction {where}: {type(problem).__name__}: {problem}. This is the "
        "simulator's fault, not the kernel's; write it another way, or run on a GPU.",
        instruction,
    )


def unsupported(instruction: Instruction, why: str = "") -> UnsupportedOpcode:
    """The fault for an instruction that the machine does not know."""
    reason = f" ({why})" if why else ""
    return UnsupportedOpcode(
        f"The simulator does not know PTX instruction {instruction.name!r}{reason}, PTX line "
        f"{instruction.ptx_line}, {place(instruction)}. Write it another way, or run on a GPU.",
        instruction,
    )


def in_bytes(number: int) -> str:
    """A number of bytes, for messages."""
    return "1 byte" if number == 1 else f"{number} bytes"


def place(instruction: Instruction) -> str:
    """``file:line`` of the Python source, for messages."""
    if not instruction.line:
        return "from no known line of Python"
    name = instruction.file.replace("\\", "/").rsplit("/", 1)[-1] or "?"
    return f"from {name}:{instruction.line}"
