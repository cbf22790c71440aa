"""Predictions of a student: kept in a file beside the sessions, and compared with the figure that comes."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import Any

from cutegen_nb.notebook.faults import NotebookUsageError
from cutegen_nb.wiring import DEFAULT_FOLDER

_FILE = "predictions.json"
"""File of the predictions, in the folder of the sessions."""
_DIGITS = 6
"""Digits of a figure that is no whole number."""
_CLOSE = 1.1
"""Ratio of two figures below which "times as large" would say too much."""


def predict(name: str, answer: object = ..., because: str = "") -> None:
    """Keep a prediction under a name, with its reason, until `compare` sets it beside the figure that comes.

    It is kept in ``.cutegen`` in the working folder and outlives the kernel. A prediction that was compared
    stays as it was. An `answer` of ``...`` keeps nothing. Raises UsageError for an answer that is no number,
    text, or list of them.
    """
    kept = _read()
    if answer is ...:
        _say(f"{name}: no prediction yet. Put yours in place of the three dots, and run the cell.")
        return
    if kept.get(name, {}).get("compared"):
        _say(f"{name}: compared already; your first prediction stays: {_shown(kept[name]['answer'])}.")
        return
    if not isinstance(because, str):
        raise NotebookUsageError(
            f"{name}: a reason is a text; two numbers stand in brackets, as in "
            f"({_shown(answer)}, {_shown(because)})"
        )
    try:
        kept[name] = json.loads(json.dumps({"answer": answer, "because": because}, allow_nan=False))
    except (TypeError, ValueError):
        raise NotebookUsageError(
            f"{name}: a prediction is a number, a text, or a list of them; this is {type(answer).__name__}. "
            'Put words in quotes, nan and inf too: "nan"'
        ) from None
    _write(kept)
    reason = f", because {because}" if because else ""
    _say(f"{name}: kept. You predict {_shown(kept[name]['answer'])}{reason}.")


def compare(name: str, seen: object) -> None:
    """Print a figure beside the prediction of that name; from then on the prediction cannot change.

    Of two numbers their ratio is told, or that they are close. Without a prediction the figure stands alone.
    """
    kept = _read()
    came = _shown(json.loads(json.dumps(seen, default=str)))
    entry = kept.get(name)
    if entry is None:
        _say(f"{name}: it is {came}. You predicted nothing.")
        return
    if not entry.get("compared"):
        kept[name] = {**entry, "compared": True}
        _write(kept)
    answer = entry["answer"]
    verdict = (
        ", as you predicted"
        if _same(answer, came)
        else f". You predicted {_shown(answer)}{_ratio(answer, seen)}"
    )
    _say(f"{name}: it is {came}{verdict}.")


def _same(answer: Any, came: str) -> bool:  # noqa: ANN401 - any value that JSON keeps
    """Return whether an answer equals the figure as text; 1 equals 1.0, and case does not matter."""
    if isinstance(answer, int | float) and not isinstance(answer, bool):
        return came in {_shown(answer), _shown(float(answer))}
    return _shown(answer).strip().lower() == came.lower()


def _ratio(answer: Any, seen: Any) -> str:  # noqa: ANN401 - any value that JSON keeps
    """Return a clause that compares two positive numbers; empty for anything else."""
    numbers = [
        value for value in (answer, seen) if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if len(numbers) < 2 or min(numbers) <= 0:  # noqa: PLR2004 - a pair
        return ""
    factor = max(numbers) / min(numbers)
    if not math.isfinite(factor):
        return ""
    if factor < _CLOSE:
        return ", which is close"
    return f": {factor:.3g} times too {'many' if numbers[0] > numbers[1] else 'few'}"


def _shown(value: Any) -> str:  # noqa: ANN401 - any value that JSON keeps
    if isinstance(value, list):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.{_DIGITS}g}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def _read() -> dict[str, Any]:
    """Read the predictions; a damaged file is renamed, with a notice. Raises UsageError."""
    path = _path()
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise NotebookUsageError(f"{path} cannot be read ({error.strerror}): mend its permissions") from None
    except ValueError:
        found = None
    if isinstance(found, dict):
        return found
    kept = path.with_suffix(f".{time.time_ns()}.damaged")
    path.rename(kept)
    _say(f"{path} held no predictions that can be read: it is kept as {kept}, and a new file begins.")
    return {}


def _write(kept: dict[str, Any]) -> None:
    path = _path()
    beside = path.with_suffix(".writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(json.dumps(kept, indent=1, ensure_ascii=False), encoding="utf-8")
        beside.replace(path)  # the old file stays whole if writing fails
    except OSError as error:
        raise NotebookUsageError(
            f"the prediction was not kept, {path} cannot be written ({error.strerror}): free space or mend "
            "its permissions, then run the cell again"
        ) from None


def _path() -> Path:
    return DEFAULT_FOLDER / _FILE


def _say(text: str) -> None:
    print(text)  # noqa: T201 - the cell's output
