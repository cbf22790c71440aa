"""`cutegen-nb layout`: a picture and the same in words, or a sentence on what to write instead."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cutegen_nb.cli.main import main


def test_svg_and_png_are_written_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "tile.svg"
    arguments = [
        "(8,64):(64,1)",
        "--swizzle",
        "3,3,3",
        "--element",
        "f16",
        "--banks",
        "-o",
        str(target),
        "--json",
    ]
    assert main(["layout", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert target.read_text().startswith("<svg")
    assert Path(found["png"]).read_bytes().startswith(b"\x89PNG")
    assert "along a row (mode 1): 1 pass" in found["description"]


def test_an_access_over_shared_memory_says_its_conflicts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["(32,8):(1,32)", "--tile", "(32,8)", "--over", "(32,32):(32,1)", "--element", "f32"]
    assert main(["layout", *arguments, "-o", str(tmp_path / "a.svg")]) == 0
    assert "bank conflicts: 32 times the least" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["(8,8", "-o", "x.svg"], "open parenthesis"),
        (["(8,8)", "-o", "x.pdf"], ".svg"),
        (["(8,8)", "-o", "nowhere/x.svg"], "does not exist"),
        (["(8,8)", "--banks", "-o", "x.svg"], "element"),
        (["(8,8)", "--element", "f61", "-o", "x.svg"], "'f61' is no element type"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    arguments: list[str],
    word: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["layout", *arguments]) == 2
    assert word in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
