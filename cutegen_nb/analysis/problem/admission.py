"""Text for a person about a problem's admission: wrong answers that its comparison would accept.

An author never gets this text, because it names what would pass.
"""

from __future__ import annotations

from cutegen_nb.core.problem import Admission


def admission_text(admission: Admission | None) -> str:
    """Describe the weaknesses of a problem's comparison; empty where every wrong answer was refused."""
    if admission is None:
        return ""
    if admission.not_tried:
        return f"Wrong answers were not tried against the comparison: {admission.not_tried}."
    parts = []
    if admission.would_pass:
        parts.append(f"these wrong answers would pass: {'; '.join(admission.would_pass)}")
    if admission.unused:
        parts.append(f"the answer hardly depends on {', '.join(admission.unused)}")
    if admission.added_inputs:
        parts.append(
            f"inputs {', '.join(admission.added_inputs)} are added, because on the problem's own these wrong "
            f"answers pass: {'; '.join(admission.tightened)}"
        )
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}." if text else ""
