"""Export bundle: a session as one zip file of text that can be taken elsewhere.

``session.json`` is the session in the format of core.codec: rounds, prompts, replies, sources, evaluations,
profiles, measurements. ``manifest.json`` holds the format, the versions that wrote it, and the SHA-256 of
each file. The problem and every kernel are added as files, for readers of the zip without this package. A
bundle never contains a key, because a session holds none.

A bundle may come from a stranger. Its contents are never run or unpacked to disk, sizes are bounded, and what
is read must match the manifest.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cutegen_nb.core.codec import collection_paused, decode, encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.session import Session

SUFFIX = ".cutegen"
"""File suffix of a bundle."""
FORMAT = 1
"""Version of the bundle format."""
LARGEST_BYTES = 512 << 20
"""Largest unpacked size of one file in a bundle, in bytes. A session of a hundred rounds has about 10 MB."""
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""Time stamp of every entry, the earliest that zip can store, so that equal sessions give equal bytes."""
_COMPRESSION = 1
"""Level of zlib: a session takes a quarter more bytes than at level 6, and a third of the time."""
_MANIFEST, _SESSION = "manifest.json", "session.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedSession:
    """Session as the text of a bundle."""

    name: str
    """Name of the session."""
    text: str
    """The session in the format of core.codec, on one line."""
    problem: str
    """Source of its problem."""
    kernels: Mapping[str, str]
    """Source of each round's kernel, by revision."""
    rounds: int
    """Number of its rounds."""


def packed(session: Session) -> PackedSession:
    """Return a session as the text of a bundle."""
    with collection_paused():
        # On one line: json writes indented text without its C code, several times as slowly.
        text = json.dumps(encode(replace(session, server="", draft="")))
    kernels = {f"r{item.number}": item.candidate.source for item in session.rounds if item.candidate}
    return PackedSession(
        name=session.name,
        text=text,
        problem=session.problem.source,
        kernels=kernels,
        rounds=len(session.rounds),
    )


def write_bundle(session: Session | PackedSession, path: Path, environment: Mapping[str, str]) -> None:
    """Write a session to `path`; the same session and versions give the same bytes. Raises OSError.

    `environment` names the versions that write it.
    """
    whole = packed(session) if isinstance(session, Session) else session
    sources = {f"{name}.py": source for name, source in whole.kernels.items()}
    texts = {_SESSION: whole.text, "problem.py": whole.problem, **sources}
    files = {name: text.encode() for name, text in texts.items()}
    manifest = {
        "format": FORMAT,
        "session": whole.name,
        "written_with": dict(environment),
        "files": {name: _digest(data) for name, data in files.items()},
    }
    with zipfile.ZipFile(path, "w") as bundle:
        for name, data in {_MANIFEST: json.dumps(manifest, indent=1).encode(), **files}.items():
            entry = zipfile.ZipInfo(name, _FIXED_TIME)
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, data, zipfile.ZIP_DEFLATED, _COMPRESSION)


def read_bundle(path: Path) -> Session:
    """Read the session of a bundle. Raises StoreError for a missing, damaged or newer file."""
    try:
        with zipfile.ZipFile(path) as bundle:
            manifest = _json(path, _MANIFEST, _member(path, bundle, _MANIFEST))
            _check_format(path, manifest)
            data = _member(path, bundle, _SESSION)
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise StoreError(
            f"{path} is no bundle or is damaged ({error}); `cutegen-nb export` writes one"
        ) from error
    stated = manifest["files"].get(_SESSION) if isinstance(manifest.get("files"), dict) else None
    if stated != _digest(data):
        raise StoreError(f"{path}: {_SESSION} is not what the manifest says; have it exported again")
    body = _json(path, _SESSION, data)
    try:
        # A key must not go to a server that a stranger's file names.
        return replace(decode(Session, body), server="")
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(
            f"{path} holds no session that this cutegen-nb can read ({error}); was it written by a newer one?"
        ) from error


def _check_format(path: Path, manifest: Mapping[str, Any]) -> None:
    found = manifest.get("format")
    if found != FORMAT:
        raise StoreError(
            f"{path} has format {found!r} and this cutegen-nb reads format {FORMAT}: "
            "use the version that wrote it"
        )


def _member(path: Path, bundle: zipfile.ZipFile, name: str) -> bytes:
    try:
        entry = bundle.getinfo(name)
    except KeyError:
        raise StoreError(
            f"{path} has no {name}, so that it is no bundle; `cutegen-nb export` writes one"
        ) from None
    with bundle.open(entry) as file:
        # The size in the entry is only a claim of the file: read one byte more than allowed.
        data = file.read(LARGEST_BYTES + 1)
    if len(data) > LARGEST_BYTES:
        raise StoreError(f"{path}: {name} is over {LARGEST_BYTES >> 20} MiB unpacked, which no session is")
    return data


def _json(path: Path, name: str, data: bytes) -> dict[str, Any]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path}: {name} is not JSON ({error}); have it exported again") from error
    if not isinstance(found, dict):
        raise StoreError(f"{path}: {name} is {type(found).__name__}, not an object; have it exported again")
    return found


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
