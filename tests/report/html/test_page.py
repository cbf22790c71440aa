"""A page is written whole or not at all."""

import pytest

from cutegen_nb.core.errors import StoreError, UsageError
from cutegen_nb.report.html.page import check_target, write_whole


def test_a_folder_and_a_missing_folder_are_refused_with_the_next_step(tmp_path):
    with pytest.raises(UsageError, match="name a file in it, such as"):
        check_target(str(tmp_path), "relu.html")
    with pytest.raises(UsageError, match="does not exist"):
        check_target(str(tmp_path / "none" / "relu.html"), "relu.html")
    assert check_target(str(tmp_path / "relu.html"), "") == tmp_path / "relu.html"


def test_text_that_cannot_be_encoded_is_written_out(tmp_path):
    write_whole("a\ud800", tmp_path / "relu.html")
    assert (tmp_path / "relu.html").read_text() == "a\\ud800"


def test_a_failure_leaves_no_draft_behind(tmp_path):
    target = tmp_path / "relu.html"
    target.mkdir()
    (target / "inside").touch()
    with pytest.raises(StoreError, match="could not be written"):
        write_whole("text", target)
    assert [item.name for item in tmp_path.iterdir()] == ["relu.html"]
