"""Advice on the next step after each verdict that is not a pass."""

from __future__ import annotations

from collections.abc import Mapping

from cutegen_nb.core.evaluation import Judged, NotJudgedReason, Outcome, Verdict

_VERDICTS: Mapping[Verdict, str] = {
    Verdict.SCREENED_OUT: "change what the finding names; the source was read and never run",
    Verdict.COMPILE_FAILED: "correct the line that the compiler names, and evaluate the file again",
    Verdict.CRASHED: "correct the line that raised, and evaluate the file again",
    Verdict.EXITED: "take out the call that ends the process; forward has to return its outputs",
    Verdict.TIMED_OUT: "look for a loop or a wait without an end at the stage named; where the work is only "
    "large, give the problem smaller inputs",
    Verdict.OUT_OF_MEMORY: "allocate less: free what is kept between calls, or work in pieces",
    Verdict.WRONG_SHAPE: "return as many outputs as the reference does, each of its shape",
    Verdict.WRONG_DTYPE: "return the reference's dtype; convert where the kernel stores",
    Verdict.WRONG_VALUES: "compare the element named with the reference at that index",
    Verdict.INPUT_MODIFIED: "store into a tensor of your own (torch.empty_like) and leave the inputs alone",
    Verdict.NONDETERMINISTIC: "look for unordered atomics, a race, or memory read before it is written",
    Verdict.OUT_OF_BOUNDS: "work out the index of the thread named; an extent that is no multiple of the "
    "tile is the usual cause",
    Verdict.MISALIGNED: "see that each row starts at an address that is a multiple of the line's "
    "access width in bytes",
    Verdict.UNINITIALISED_READ: "write that memory before the line reads it, or guard the read",
    Verdict.RACE: "see which elements the two lines give a thread; `cutegen-nb layout` draws them",
    Verdict.DEADLOCK: "let every thread of the CTA reach the barrier, and give every wait its arrival",
    Verdict.ASYNC_HAZARD: "count the copies in flight at that line; a wait that leaves one too many is "
    "the usual cause",
    Verdict.NOT_OWN_WORK: "do in a kernel of the file what the line named leaves to PyTorch, a library or "
    "the host; `--library conv,matmul` allows PyTorch the parts that it names",
    Verdict.CHEATED: "compute it in a kernel of the file; where the evidence is wrong, "
    "`cutegen-nb run --policy ask` lets you overrule it with a reason",
}
"""Advice by verdict."""
_REASONS: Mapping[NotJudgedReason, str] = {
    NotJudgedReason.UNSUPPORTED_OPCODE: "write it without that instruction (`cutegen-nb instructions` lists "
    "what is known), or evaluate it on a GPU",
    NotJudgedReason.EMPTY_TRACE: "evaluate it again; if the trace stays empty, see that forward launches "
    "a kernel in every call",
    NotJudgedReason.ABOVE_ROOF: "look for work that the timed call leaves out; build nothing on this time",
    NotJudgedReason.TIMES_DISAGREE: "evaluate it again while nothing else uses the GPU",
    NotJudgedReason.REPLY_UNUSABLE: "ask again for one whole file in a ```python block",
    NotJudgedReason.DECLINED: "use another author (--author manual, or openai with a model) or a problem "
    "that this one can write",
}
"""Advice by the reason for which a candidate was not judged."""


def next_step(outcome: Outcome) -> str:
    """Return the advice, without a full stop; empty for a pass."""
    if isinstance(outcome, Judged):
        return _VERDICTS.get(outcome.verdict, "")
    return _REASONS[outcome.reason]
