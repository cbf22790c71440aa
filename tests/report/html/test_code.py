"""Highlighted source keeps every character."""

from __future__ import annotations

from cutegen_nb.report.html.code import highlight

OLD = "import torch\n\n\ndef f(x):\n    y = x + 1  # one\n    return y\n" + "".join(
    f"a{i} = {i}\n" for i in range(20)
)


def test_highlighting_keeps_every_character():
    for source in (OLD, "", "a\r\nb\r", "x = '''unclosed\n\n", "\x00\t\ufeff?", "if True:\n\tpass\n\n"):
        lines = ["".join(text for _, text in line) for line in highlight(source)]
        assert "\n".join(lines) + ("\n" if source.endswith("\n") else "") == source
