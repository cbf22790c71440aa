"""Write cutegen_nb/kernels/examples/facts.json: the traced problems of the table of worked examples."""

from __future__ import annotations

import json

from cutegen_nb.authors.offline.examples import FOLDER, Example, examples
from cutegen_nb.core.codec import encode


def facts_text(table: tuple[Example, ...]) -> str:
    """Facts of every example's problem as JSON, one problem a line."""
    from cutegen_nb.evaluator.problem.trace import trace_facts  # noqa: PLC0415 - imports torch

    lines = [f"{json.dumps(item.name)}: {json.dumps(encode(trace_facts(item.problem)))}" for item in table]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    (FOLDER / "facts.json").write_text(facts_text(examples()), encoding="utf-8")
