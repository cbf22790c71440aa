"""Tolerances that an older version stored are still read."""

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.tolerance import Tolerance


def test_a_tolerance_from_before_the_oracle_was_optional_is_against_it():
    stored = encode(Tolerance(element=1e-4, l2=1e-4, reference_l2=1e-7, against_oracle=False))
    assert decode(Tolerance, stored).against_oracle is False
    del stored["against_oracle"]
    assert decode(Tolerance, stored).against_oracle is True
