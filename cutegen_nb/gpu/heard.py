"""What a worker has said so far, as the evaluator takes it in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cutegen_nb.core.evaluation import Finding, Severity
from cutegen_nb.core.ports import Progress

_INSIDE = "reaches-inside"
_THREADS = "reaches-threads"
"""Frames of every thread hold the judge's channel; who looks in its own turn may send in the judge's."""
_MOST_REACHED = 20
_LONGEST = 200


@dataclass(slots=True)
class Heard:
    """Given each record of one worker; what it returns is sent back."""

    progress: Progress
    """Told what is being done now."""
    seeds: list[int] = field(default_factory=list)
    """What the worker gets when the candidate has been imported."""
    stage: str = ""
    """What it last said it was doing."""
    result: dict[str, Any] | None = None
    """The record that ended it."""
    reached: list[Finding] = field(default_factory=list)
    """What the candidate's own lines did to the process, each told when it happened."""
    forged: str = ""
    """What came while the candidate's code was on the stack and the judge's was not; empty for nothing."""
    _inside: bool = False

    def __call__(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Take one record in; the answer to ``imported`` is the seeds."""
        kind = record.get("kind")
        if kind == "entering":
            self._inside = True
        elif kind == "leaving":
            self._inside = False
        elif kind == "reached":
            self._note(record)
            if not self._inside and record.get("finding") in {_INSIDE, _THREADS}:
                self.forged = self.forged or "the candidate's code looked for it while the judge was at work"
            elif record.get("finding") == _THREADS:
                self.forged = self.forged or "the candidate's code looked for it in the frames of all threads"
        elif self._inside:
            self.forged = self.forged or f"a {str(kind)[:40]} that came while the candidate's own code ran"
        elif kind == "stage":
            self.stage = str(record.get("text", ""))[:_LONGEST]
            self.progress(self.stage)
        elif kind == "imported":
            return {"seeds": self.seeds}
        elif self.result is None:
            self.result = record
        return None

    def _note(self, record: dict[str, Any]) -> None:
        if len(self.reached) == _MOST_REACHED:
            return
        line = record.get("line")
        self.reached.append(
            Finding(
                kind=str(record.get("finding"))[:_LONGEST],
                message=str(record.get("message"))[:_LONGEST],
                severity=Severity.FLAG,
                line=line if isinstance(line, int) and line > 0 else 0,
            )
        )
