"""Records of the knowledge base as one JSON file, to take elsewhere; and the records that are shipped.

A file may come from a stranger. It is read as data and never run; its size, the number of its records and the
lengths of its texts are bounded, and a field that no record has is refused.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.search.knowledge import RecordSource, StrategyRecord

FORMAT = 1
"""Version of the file format."""
KIND = "cutegen-nb strategies"
"""First entry of every file."""
SHIPPED = Path(__file__).resolve().parent.parent / "knowledge"
"""Folder of the records that come with the package, a file for each GPU."""
LARGEST_BYTES = 64 << 20
"""Largest file, in bytes; a record takes about 3 KB."""
MOST_RECORDS = 20_000
"""Most records of a file."""
LONGEST_TEXT = 2_000
"""Longest text of a record in characters; a statement has at most four sentences."""
MOST_ITEMS = 64
"""Most items of a list in a record."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, and those that hide text or turn its direction."""
_HEAD = ("kind", "format", "note", "records")


def write_records(path: Path, records: Sequence[StrategyRecord], note: str = "") -> None:
    """Write records to a file; the same records give the same bytes. Raises StoreError."""
    whole = {"kind": KIND, "format": FORMAT, "note": note, "records": [encode(item) for item in records]}
    try:
        path.write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}") from error


def read_records(path: Path, source: RecordSource) -> tuple[StrategyRecord, ...]:
    """Read the records of a file and mark them with their source.

    Raises StoreError, in one sentence, for a file that is no such file, is damaged or too large, or has a
    field or a value that no record has.
    """
    whole = _whole(path)
    records = whole["records"]
    if not isinstance(records, list) or len(records) > MOST_RECORDS:
        raise StoreError(f"{path}: records is not a list of at most {MOST_RECORDS:,}")
    found = []
    for place, data in enumerate(records):
        try:
            _check(StrategyRecord, data, "")
            found.append(replace(decode(StrategyRecord, data), source=source))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreError(
                f"{path}: record {place} cannot be read: {error}; nothing was imported"
            ) from error
    return tuple(found)


@cache
def shipped_records() -> tuple[StrategyRecord, ...]:
    """Return the records that come with the package. Raises StoreError for a damaged installation."""
    files = sorted(SHIPPED.glob("*.json"))
    return tuple(record for path in files for record in read_records(path, RecordSource.SHIPPED))


def _whole(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    if len(data) > LARGEST_BYTES:
        raise StoreError(f"{path} is over {LARGEST_BYTES >> 20} MiB, which no file of strategies is")
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(
            f"{path} is not JSON ({error}); `cutegen-nb strategies --export` writes such a file"
        ) from error
    if not isinstance(whole, dict) or whole.get("kind") != KIND:
        raise StoreError(f"{path} holds no strategies; `cutegen-nb strategies --export` writes such a file")
    if whole.get("format") != FORMAT:
        raise StoreError(
            f"{path} has format {whole.get('format')!r} and this cutegen-nb reads format {FORMAT}: "
            "use the version that wrote it"
        )
    unknown = sorted(set(whole) - set(_HEAD))
    if unknown or "records" not in whole:
        raise StoreError(f"{path}: {f'unknown field {unknown[0]!r}' if unknown else 'records are missing'}")
    return whole


def _check(kind: Any, data: Any, where: str) -> None:  # noqa: ANN401 - a type hint and JSON
    """Raise ValueError for a field that a dataclass lacks, or a text or list that is too long."""
    if isinstance(data, str):
        _check_text(data, where)
    elif isinstance(data, list):
        if len(data) > MOST_ITEMS:
            raise ValueError(f"{where} has {len(data):,} items and at most {MOST_ITEMS} are read")
        inner = next(iter(typing.get_args(kind)), None)
        for item in data:
            _check(inner, item, where)
    elif isinstance(data, dict):
        _check_object(kind, data, where)


def _check_text(data: str, where: str) -> None:
    if len(data) > LONGEST_TEXT:
        raise ValueError(f"{where} has {len(data):,} characters and at most {LONGEST_TEXT:,} are read")
    if _CONTROL.search(data):
        raise ValueError(f"{where} holds a control character")


def _check_object(kind: Any, data: Mapping[str, Any], where: str) -> None:  # noqa: ANN401 - a type hint
    if not dataclasses.is_dataclass(kind):
        if len(data) > MOST_ITEMS:
            raise ValueError(f"{where} has {len(data):,} entries and at most {MOST_ITEMS} are read")
        for name, item in data.items():
            _check_text(name, where)
            if not isinstance(item, str):
                raise ValueError(f"{where} holds {type(item).__name__} where text belongs")  # noqa: TRY004 - one kind of failure
            _check_text(item, where)
        return
    hints = typing.get_type_hints(kind)
    assert isinstance(kind, type)
    if data.get("_") != kind.__name__:
        raise ValueError(f"{where or 'it'} is no {kind.__name__}")
    for name, item in data.items():
        if name == "_":
            continue
        if name not in hints:
            raise ValueError(f"unknown field {name!r}")
        _check(hints[name], item, name)
