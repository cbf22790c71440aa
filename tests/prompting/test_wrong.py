"""A pattern of wrong values is told with its usual cause."""

from __future__ import annotations

from dataclasses import replace

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Correctness, OutputComparison, Verdict
from cutegen_nb.core.wrong_values import TileShare, WrongKind, WrongValues
from cutegen_nb.prompting.feedback import evaluation_text
from cutegen_nb.testing import examples

SOURCE = "import cutlass\n\n\ndef kernel():\n    x = 1\n    y = cute.nothing(x)\n    return y\n"


def test_a_pattern_of_wrong_values_is_told_with_tiles_and_its_usual_cause():
    wrong = WrongValues(
        kind=WrongKind.TILES,
        sentence="2 of 12 tiles of 64×64 are wrong throughout",
        hint="a CTA's coordinate",
        bad_count=8192,
        element_count=49152,
        tile_shape=(64, 64),
        tiles=(TileShare(tile=(1, 0), bad_fraction=1.0), TileShare(tile=(2, 1), bad_fraction=1.0)),
        bad_tiles=2,
        tile_count=12,
    )
    output = OutputComparison(
        index=0, shape=(256, 192), dtype="float32", matches=False, max_abs_error=3.0, relative_l2_error=0.4,
        reference_relative_l2_error=1e-7, tolerance_abs=1e-5, tolerance_rel=1e-5, tolerance_l2=1e-6,
        bad_fraction=8192 / 49152, first_bad=(64, 0), first_bad_values=(4.0, 1.0), pattern=wrong.sentence,
        wrong=wrong,
    )  # fmt: skip
    found = replace(
        examples.failed(Verdict.WRONG_VALUES, "Output 0 is wrong."),
        correctness=Correctness(seeds=(1,), outputs=(output,), checks=("values",)),
    )
    text = evaluation_text(found, Candidate(source=SOURCE, author="x"))
    assert "  - 8,192 of 49,152 elements wrong\n" in text
    assert "  - by tiles of 64×64: 2 of 12 hold wrong elements; worst: (1, 0) 100%, (2, 1) 100%\n" in text
    assert "  - usual cause: a CTA's coordinate" in text
