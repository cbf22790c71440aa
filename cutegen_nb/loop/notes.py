"""Note for a person on a round without a kernel, or on a repair without one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from cutegen_nb.core.evaluation import NotJudged, NotJudgedReason
from cutegen_nb.core.round import Attempt, Decision, ended_text
from cutegen_nb.prompting.reply_faults import ReplyFault, told

_UNUSABLE = NotJudged(reason=NotJudgedReason.REPLY_UNUSABLE)
_DECLINED = NotJudged(reason=NotJudgedReason.DECLINED)


def round_note(attempts: Sequence[Attempt], decisions: Sequence[Decision] = ()) -> str:
    """Say why a round, or the repair of its kernel, brought no kernel; empty where the last request did."""
    if not attempts:
        return f"stopped at the {decisions[-1].gate} gate" if decisions else ""
    last = attempts[-1]
    if any(attempt.candidate and attempt.evaluation for attempt in attempts):
        return "" if last.candidate else f"no repair came: {_reason(attempts)}"
    if last.ended:
        return f"the author ended {ended_text(attempt.ended for attempt in attempts if attempt.ended)}"
    return _reason(attempts)


def _reason(attempts: Sequence[Attempt]) -> str:
    """Reason of the last attempt: the fault of its reply in a person's words, or the author's error.

    An author that declines to answer again is told by the fault of the answer that it gave.
    """
    last = attempts[-1]
    if (
        len(attempts) > 1
        and _is_unusable(attempts[-2])
        and last.evaluation
        and last.evaluation.outcome == _DECLINED
    ):
        return _reason(attempts[:-1])
    if last.reply is None or not _is_unusable(last) or last.evaluation is None:
        return last.problem
    asked = sum(1 for _ in takewhile(_is_unusable, reversed(attempts)))
    return told(ReplyFault(last.evaluation.summary.partition(":")[0]), last.reply, asked)


def _is_unusable(attempt: Attempt) -> bool:
    return attempt.evaluation is not None and attempt.evaluation.outcome == _UNUSABLE
