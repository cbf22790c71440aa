from __future__ import annotations

from types import SimpleNamespace

import pytest

from cutegen_nb.core.errors import UsageError
from cutegen_nb.notebook.attendance import attendance

JUPYTERLAB = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=True))
NBCLIENT = SimpleNamespace(kernel=SimpleNamespace(_allow_stdin=False))
TERMINAL = SimpleNamespace()


@pytest.mark.parametrize(
    ("shell", "given", "environment", "policy", "attended"),
    [
        (JUPYTERLAB, None, {}, "ask", True),
        (NBCLIENT, None, {}, "auto", False),
        (TERMINAL, None, {}, "auto", False),
        (JUPYTERLAB, None, {"NBGRADER_EXECUTION": "autograde"}, "auto", False),
        (JUPYTERLAB, "auto", {}, "auto", True),
        (JUPYTERLAB, None, {"CUTEGEN_NB_POLICY": "auto"}, "auto", True),
        (NBCLIENT, None, {"CUTEGEN_NB_POLICY": "ask"}, "ask", True),
        (NBCLIENT, "auto", {"CUTEGEN_NB_POLICY": "ask"}, "auto", False),
    ],
)
def test_who_decides(shell, given, environment, policy, attended):
    decided = attendance(shell, given, environment)
    assert (decided.policy, decided.attended) == (policy, attended)


def test_asking_needs_somebody_to_ask():
    with pytest.raises(UsageError, match="cutegen-nb run FILE --policy ask"):
        attendance(TERMINAL, "ask", {})
    with pytest.raises(UsageError, match="no policy 'maybe'"):
        attendance(JUPYTERLAB, None, {"CUTEGEN_NB_POLICY": "maybe"})
