from __future__ import annotations

import pytest

from cutegen_nb import compare, predict
from cutegen_nb.notebook.faults import NotebookUsageError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys) -> str:
    return capsys.readouterr().out.strip()


def test_a_prediction_is_kept_and_compared(capsys, folder):
    predict("sectors", 1024, because="fewer are not possible")
    assert said(capsys) == "sectors: kept. You predict 1,024, because fewer are not possible."
    assert (folder / ".cutegen" / "predictions.json").is_file()
    compare("sectors", 8192)
    assert said(capsys) == "sectors: it is 8,192. You predicted 1,024: 8 times too few."


def test_it_may_change_until_it_is_compared(capsys):
    predict("warps", 5)
    predict("warps", 32)
    said(capsys)
    compare("warps", 32)
    assert said(capsys) == "warps: it is 32, as you predicted."
    predict("warps", 33)
    assert said(capsys) == "warps: compared already; your first prediction stays: 32."


def test_three_dots_are_no_prediction(capsys, folder):
    predict("warps", ...)
    assert "no prediction yet" in said(capsys)
    assert not (folder / ".cutegen").exists()
    compare("warps", 32)
    assert said(capsys) == "warps: it is 32. You predicted nothing."


def test_a_second_number_is_no_reason(capsys, folder):
    with pytest.raises(NotebookUsageError, match=r"two numbers stand in brackets, as in \(3, 232\)"):
        predict("first thread outside", 3, 232)
    assert not (folder / ".cutegen").exists()


@pytest.mark.parametrize(
    ("answer", "came", "words"),
    [
        (1, 1.0, "it is 1.0, as you predicted."),
        (128, 1.0, "it is 1.0. You predicted 128: 128 times too many."),
        ((3, 232), (3, 232), "it is (3, 232), as you predicted."),
        ("Race", "race", "it is race, as you predicted."),
        (True, True, "it is True, as you predicted."),
        (True, False, "it is False. You predicted True."),
        (0, 5, "it is 5. You predicted 0."),
        (100, 105, "it is 105. You predicted 100, which is close."),
        (0.125, 1 / 7, "it is 0.142857. You predicted 0.125: 1.14 times too few."),
    ],
)
def test_answers_are_compared_by_what_they_say(capsys, answer, came, words):
    predict("a", answer)
    said(capsys)
    compare("a", came)
    assert said(capsys) == f"a: {words}"


def test_what_cannot_be_kept_gets_one_sentence():
    with pytest.raises(
        NotebookUsageError, match="a prediction is a number, a text, or a list of them; this is object"
    ):
        predict("a", object())
    with pytest.raises(
        NotebookUsageError, match=r'this is list\. Put words in quotes, nan and inf too: "nan"'
    ):
        predict("a", ["right", float("nan")])


@pytest.mark.parametrize("content", ["[broken", "[1, 2]"])
def test_a_damaged_file_is_kept_under_another_name_and_told(capsys, folder, content):
    (folder / ".cutegen").mkdir()
    (folder / ".cutegen" / "predictions.json").write_text(content)
    predict("a", 3)
    assert "is kept as" in said(capsys)
    compare("a", 3)
    assert "as you predicted" in said(capsys)
    assert [path.read_text() for path in (folder / ".cutegen").glob("*.damaged")] == [content]


def test_a_file_that_cannot_be_written_is_one_sentence_and_stays(folder, monkeypatch):
    predict("a", 3)
    before = (folder / ".cutegen" / "predictions.json").read_text()

    def full(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", full)
    with pytest.raises(NotebookUsageError, match=r"was not kept.*No space left on device"):
        predict("b", 4)
    assert (folder / ".cutegen" / "predictions.json").read_text() == before
