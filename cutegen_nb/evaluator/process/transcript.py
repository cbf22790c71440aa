"""Records of one worker as the evaluator receives them, with their texts made safe to print."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.ports import Progress

_INSIDE = "reaches-inside"
_THREADS = "reaches-threads"
"""Finding that the candidate read the frames of all threads, which hold the judge's channel.

A candidate that reads them while its own code runs could send a record later, while the judge's code runs.
"""
_MOST_REACHED = 20
_LONGEST = 200
_SHOWN = ("exhibits", "findings", "summary")
"""Members of an evaluation that hold text, some of it the candidate's own."""


def escape_for_print(text: str) -> str:
    """Make `text` safe to print: later lines are indented, so that none passes for this package's output.

    Characters that move a cursor or hide others are written as escapes.
    """
    lines = ("".join(map(_written, line)) for line in text.splitlines())
    return "\n    ".join(lines)


def _written(mark: str) -> str:
    return mark if mark.isprintable() or mark == "\t" else mark.encode("unicode_escape").decode("ascii")


def _harmless_record(record: dict[str, Any]) -> dict[str, Any]:
    """Make the texts of a final record safe to print."""
    said: dict[str, Any] = (
        {"message": escape_for_print(str(record["message"]))} if "message" in record else {}
    )
    evaluation = record.get("evaluation")
    if isinstance(evaluation, dict):
        words = {name: _within(evaluation[name]) for name in _SHOWN if name in evaluation}
        said["evaluation"] = evaluation | words
    return record | said


def _within(data: Any) -> Any:
    if isinstance(data, str):
        return escape_for_print(data)
    if isinstance(data, dict):
        return {name: _within(item) for name, item in data.items()}
    return [_within(item) for item in data] if isinstance(data, list) else data


@dataclass(slots=True)
class RecordHandler:
    """Handler of one worker's records; its return value is sent back to the worker."""

    progress: Progress
    """Callback for the current stage."""
    seeds: list[int] = field(default_factory=list)
    """Input seeds, sent to the worker once the candidate has been imported."""
    stage: str = ""
    """Stage that the worker named last."""
    result: dict[str, Any] | None = None
    """Final record of the worker; None before it came."""
    reached: list[Finding] = field(default_factory=list)
    """Findings on the candidate's access to the process, each reported when it happened."""
    forged: str = ""
    """Evidence that the candidate sent a record or looked for the channel; empty for none."""
    _inside: bool = False
    """True while the candidate's code runs, between ``entering`` and ``leaving``."""

    def __call__(self, record: dict[str, Any]) -> dict[str, Any] | None:
        """Process one record. The answer to ``imported`` is the seeds; any other record has no answer."""
        kind = record.get("kind")
        if kind == "entering":
            self._inside = True
        elif kind == "leaving":
            self._inside = False
        elif kind == "reached":
            self._note(record)
            if not self._inside and record.get("finding") in {_INSIDE, _THREADS}:
                self.forged = self.forged or "its code reached into the process while the judge ran"
            elif record.get("finding") == _THREADS:
                self.forged = self.forged or "its code read the frames of all threads"
        elif self._inside:
            self.forged = (
                self.forged
                or f"a {escape_for_print(str(kind)[:40])} record was sent while the candidate's own code ran"
            )
        elif kind == "stage":
            self.stage = escape_for_print(str(record.get("text", ""))[:_LONGEST])
            self.progress(self.stage)
        elif kind == "imported":
            return {"seeds": self.seeds}
        elif self.result is None:
            self.result = _harmless_record(record)
        return None

    @property
    def inside(self) -> bool:
        """True while the candidate's code runs, which may send no record of its own."""
        return self._inside

    def _note(self, record: dict[str, Any]) -> None:
        if len(self.reached) == _MOST_REACHED:
            return
        line = record.get("line")
        self.reached.append(
            Finding(
                kind=escape_for_print(str(record.get("finding"))[:_LONGEST]),
                message=escape_for_print(str(record.get("message"))[:_LONGEST]),
                severity=Severity.FLAG,
                line=line if isinstance(line, int) and line > 0 else 0,
            )
        )
