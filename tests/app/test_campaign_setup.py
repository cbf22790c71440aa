"""Set-up of a campaign: its problems, its name, and what may change when it goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cutegen_nb.app.campaign_setup import (
    campaign_name,
    campaign_problems,
    changed_limits,
    open_variant,
    recorded_budgets,
)
from cutegen_nb.cli.main import parse
from cutegen_nb.core.errors import StoreError, UsageError
from cutegen_nb.core.search.campaign import CampaignEntry, CampaignRecord, ProblemState
from cutegen_nb.loop.campaign.variants import Variant
from cutegen_nb.store.campaign_file import FILE_NAME, read_campaign
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples

RECORD = CampaignRecord(
    name="level1",
    created_at="2026-11-20T00:00:00+00:00",
    settings={"--author": "offline", "--schedule": "plateau"},
    budgets={"--rounds": "6", "--tokens": "none"},
    environment={"torch": "2.13.0"},
)


@pytest.fixture
def folder(tmp_path):
    for name in ("1_relu", "2_relu", "10_broken"):
        text = "def get_inputs(:\n" if name.endswith("broken") else examples.RELU_SOURCE
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def test_files_come_in_the_order_of_their_numbers_with_names_of_their_own(folder):
    problems, files = campaign_problems([str(folder)], None, ())

    assert files == 3
    assert [item.file.rpartition("/")[2] for item in problems] == ["1_relu.py", "2_relu.py", "10_broken.py"]
    assert len({item.name for item in problems}) == 3


def test_a_file_that_states_no_problem_is_one_with_its_fault(folder):
    *_, broken = campaign_problems([str(folder)], None, ())[0]

    assert broken.problem is None
    assert "does not parse" in broken.fault


@pytest.mark.parametrize(
    ("wanted", "chosen"), [("2", 1), ("1-2", 2), ("10,1", 2), ("1_relu", 1), ("1_relu.py,2-10", 3)]
)
def test_some_files_are_chosen_by_number_range_or_name(folder, wanted, chosen):
    problems, files = campaign_problems([str(folder)], wanted, ())

    assert (len(problems), files) == (chosen, 3)


def test_the_library_policy_reaches_every_problem(folder):
    problems, _ = campaign_problems([str(folder)], "1-2", ("conv",))

    assert {item.problem.library for item in problems} == {("conv",)}


def test_a_campaign_is_named_after_its_folder_or_as_asked(folder):
    assert campaign_name([str(folder)], None) == folder.name
    assert campaign_name([str(folder / "1_relu.py")], None) == folder.name
    assert campaign_name([str(folder)], "mine") == "mine"
    for name in ("", "..", "a/b", " "):
        with pytest.raises(UsageError, match="is no name of a folder"):
            campaign_name([str(folder)], name)


def test_limits_are_recorded_by_option():
    options = parse(["campaign", "folder", "--rounds", "4", "--total-dollars", "2.5"])
    found = recorded_budgets(options)

    assert (found["--rounds"], found["--total-dollars"], found["--tokens"]) == ("4", "2.5", "none")


def test_changed_limits_are_one_sentence():
    assert changed_limits(RECORD, RECORD.budgets) == ""
    assert changed_limits(RECORD, {"--rounds": "8", "--tokens": "none"}) == (
        "level1 goes on with other limits: --rounds 8 (before: 6)"
    )


@pytest.fixture
def store(tmp_path):
    with SqliteStore(tmp_path / "store") as opened:
        yield opened


def test_a_campaign_goes_on_with_what_it_had_and_with_new_limits(tmp_path, store):
    open_variant(Variant(), tmp_path, store, RECORD)
    entry = CampaignEntry(name="relu", file="relu.py", digest="d", state=ProblemState.FINISHED)
    run, _ = open_variant(Variant(), tmp_path, store, RECORD)
    run.keep(replace(RECORD, entries=(entry,)))

    more = replace(RECORD, created_at="later", environment={}, budgets={"--rounds": "8", "--tokens": "none"})
    run, told = open_variant(Variant(), tmp_path, store, more)

    assert "--rounds 8 (before: 6)" in told
    assert run.record == replace(RECORD, budgets=more.budgets, entries=(entry,))
    assert read_campaign(tmp_path) == run.record


def test_other_settings_are_refused_and_named(tmp_path, store):
    open_variant(Variant(), tmp_path, store, RECORD)
    other = replace(RECORD, settings={"--author": "openai:m", "--schedule": "plateau"})

    with pytest.raises(UsageError, match="was begun with --author offline, now openai:m: results of both"):
        open_variant(Variant(), tmp_path, store, other)
    assert read_campaign(tmp_path) == RECORD


def test_a_folder_with_sessions_of_no_campaign_is_refused(tmp_path, store):
    store.create(examples.evolved_session())

    with pytest.raises(UsageError, match="holds sessions of no campaign"):
        open_variant(Variant(), tmp_path, store, RECORD)


def test_a_damaged_record_is_one_sentence(tmp_path, store):
    (tmp_path / FILE_NAME).write_text("{")

    with pytest.raises(StoreError, match="is not the record of a campaign"):
        open_variant(Variant(), tmp_path, store, RECORD)
