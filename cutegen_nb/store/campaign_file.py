"""Record of a campaign as a JSON file beside its sessions, replaced as a whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.search.campaign import CampaignRecord

FILE_NAME = "campaign.json"
"""Name of the file in the store's folder."""
_FORMAT = 1
"""Newest format that is read."""


def read_campaign(folder: Path) -> CampaignRecord | None:
    """Read the record of a folder; None if there is none. Raises StoreError."""
    path = folder / FILE_NAME
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        found = decode(CampaignRecord, data)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}; check its permissions") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = f"{path} is not the record of a campaign ({error}): restore a copy, or use another --store"
        raise StoreError(message) from error
    if found.format > _FORMAT:
        message = (
            f"{path} has format {found.format} and this cutegen-nb reads formats up to {_FORMAT}: "
            "use the version that wrote it, or another --store"
        )
        raise StoreError(message)
    return found


def write_campaign(folder: Path, record: CampaignRecord) -> None:
    """Replace the record of a folder; a crash leaves the old one or the new one. Raises StoreError."""
    path = folder / FILE_NAME
    draft = path.with_suffix(".json.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            json.dump(encode(record), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        message = (
            f"cannot write {path}: {error.strerror}; free space or choose another --store, "
            "and run the same command again"
        )
        raise StoreError(message) from error
