"""A stored session goes on with its own author, model and device unless an option changes them."""

import argparse
from dataclasses import replace

import pytest

from cutegen_nb.app.resuming import resumed_problem, resumed_settings
from cutegen_nb.core.errors import UsageError
from cutegen_nb.core.search.comparison import Relation
from cutegen_nb.testing.examples import session_of


@pytest.fixture
def stored():
    return replace(
        session_of(Relation.FIRST, name="relu_2"), author="openai:small-coder", server="http://one/v1"
    )


def options(**given):
    return argparse.Namespace(
        **{"model": None, "base_url": None, "target": None, "no_history": True, **given}
    )


def test_the_problem_has_the_sessions_name(stored):
    named = replace(stored, problem=replace(stored.problem, name="relu"))
    assert resumed_problem(named).name == "relu_2"


def test_author_model_server_and_device_are_the_sessions(stored, tmp_path):
    found = resumed_settings(stored, options(), tmp_path)
    assert (found.author, found.server.model, found.server.base_url, found.device) == (
        "openai", "small-coder", "http://one/v1", "simulator",
    )  # fmt: skip


def test_an_option_and_the_full_address_come_before_what_is_stored(stored, tmp_path):
    found = resumed_settings(stored, options(model="large-coder"), tmp_path, server="http://one:1234/v1")
    assert (found.server.model, found.server.base_url) == ("large-coder", "http://one:1234/v1")


def test_a_replay_is_shown_again_and_not_resumed(stored, tmp_path):
    with pytest.raises(UsageError, match="`replay relu` shows it again"):
        resumed_settings(replace(stored, author="replay:relu"), options(), tmp_path)
