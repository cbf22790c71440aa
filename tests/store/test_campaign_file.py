"""The record of a campaign: replaced as a whole, read or refused in a sentence."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cutegen_nb.core.codec import encode
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.search.campaign import CampaignEntry, CampaignRecord, ProblemState
from cutegen_nb.store.campaign_file import FILE_NAME, read_campaign, write_campaign

RECORD = CampaignRecord(
    name="level1", created_at="2026-01-01T00:00:00+00:00", settings={"author": "offline"},
    budgets={"rounds": "6"}, environment={"python": "3.12"},
    entries=(CampaignEntry(name="relu", file="19_ReLU.py", digest="d", state=ProblemState.FINISHED),),
)  # fmt: skip


def test_a_record_comes_back_as_it_was_and_is_replaced_as_a_whole(tmp_path):
    folder = tmp_path / "new" / "store"
    assert read_campaign(folder) is None
    write_campaign(folder, RECORD)
    assert read_campaign(folder) == RECORD
    write_campaign(folder, replace(RECORD, entries=()))
    assert read_campaign(folder) == replace(RECORD, entries=())
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]


def test_a_crash_while_writing_leaves_the_old_record(tmp_path, monkeypatch):
    write_campaign(tmp_path, RECORD)

    def full(*given, **named):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StoreError, match=r"cannot write .*No space left .*run the same command again"):
        write_campaign(tmp_path, replace(RECORD, entries=()))
    assert read_campaign(tmp_path) == RECORD
    monkeypatch.undo()
    write_campaign(tmp_path, replace(RECORD, entries=()))
    assert read_campaign(tmp_path).entries == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not the record of a campaign"),
        ("[]", "is not the record of a campaign"),
        ('{"name": "x"}', "is not the record of a campaign"),
        (
            json.dumps({**encode(RECORD), "format": 2}),
            "has format 2 and this cutegen-nb reads formats up to 1",
        ),
    ],
)
def test_what_is_no_record_or_a_newer_one_is_refused(tmp_path, text, said):
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(StoreError, match=said):
        read_campaign(tmp_path)


def test_a_folder_in_the_place_of_the_file_is_one_sentence(tmp_path):
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StoreError, match="cannot read"):
        read_campaign(tmp_path)
    with pytest.raises(StoreError, match="cannot write"):
        write_campaign(tmp_path, RECORD)
