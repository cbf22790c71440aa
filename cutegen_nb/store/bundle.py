"""A session as one file that can be taken elsewhere: a zip of text.

``session.json`` is the session as core.codec writes it: rounds, prompts, replies, sources, evaluations,
profiles, measurements. ``manifest.json`` has the format, who made it, and each file's SHA-256. Beside them
lie the problem and every kernel as files, for whoever opens the zip with something else. There is no key in
it: a session holds none.

A bundle comes from somebody else. Nothing of it is run or unpacked to disk, its sizes are bounded, and what
is read must be what the manifest says.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.session import Session

SUFFIX = ".cutegen"
FORMAT = 1
LARGEST_BYTES = 512 << 20
"""Of one file in a bundle, unpacked; a session of a hundred rounds has about 10 MB."""
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
_MANIFEST, _SESSION = "manifest.json", "session.json"


def write_bundle(session: Session, path: Path, environment: Mapping[str, str]) -> None:
    """Write a session to `path`; the same session gives the same bytes. Raises OSError.

    `environment` names the versions that write it.
    """
    files = {_SESSION: json.dumps(encode(session), indent=1), "problem.py": session.problem.source}
    for item in session.rounds:
        if item.candidate:
            files[f"r{item.number}.py"] = item.candidate.source
    manifest = {
        "format": FORMAT,
        "session": session.name,
        "written_with": dict(environment),
        "files": {name: _digest(text.encode()) for name, text in files.items()},
    }
    with zipfile.ZipFile(path, "w") as bundle:
        for name, text in {_MANIFEST: json.dumps(manifest, indent=1), **files}.items():
            entry = zipfile.ZipInfo(name, _FIXED_TIME)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            bundle.writestr(entry, text)


def read_bundle(path: Path) -> Session:
    """The session of a bundle. Raises StoreError, in a sentence, when it cannot be had as it was written."""
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
        return decode(Session, body)
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
        # The size in the entry is only what the file claims.
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
