"""Session and revision objects that the magics leave in the person's namespace."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from cutegen_nb.analysis.figures.quantity import duration
from cutegen_nb.analysis.history.ended import ended_words
from cutegen_nb.analysis.history.summary import RoundSummary, revision, rows
from cutegen_nb.app.exporting import export
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.faults import NotebookUsageError, as_notebook_error
from cutegen_nb.notebook.saved_record import record, waiting
from cutegen_nb.report.html.code import listing
from cutegen_nb.report.markup import Style, visible, without_math

if TYPE_CHECKING:
    import pandas as pd

_WORDS = ("strategy", "verdict", "relation")
_FIGURES = ("estimate", "median_ms", "speedup")
"""Figures of the narrow table: the first without a GPU, the others with one."""

MimeBundle = dict[str, str]
"""Representations of a result by MIME type."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFunctions:
    """Functions by which a handle runs or evaluates a revision in a worker process."""

    make: Callable[[Session, Candidate], Any]
    """Returns a callable that runs a revision in the worker."""
    judge: Callable[[Session, Candidate], Evaluation]
    """Evaluates a revision at tier C, the last tier."""


class DisplayResult:
    """Result of a cell, as HTML and as plain text."""

    def __init__(self, bundle: MimeBundle) -> None:
        html = {"text/html": without_math(bundle["text/html"])} if "text/html" in bundle else {}
        self.bundle = {**bundle, **html}

    def __repr__(self) -> str:
        return self.bundle["text/plain"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> MimeBundle:  # noqa: ARG002
        return self.bundle


def in_blocks(text: str) -> DisplayResult:
    """Return a text whose tables keep their lines: JupyterLab breaks printed lines in the middle of words."""
    blocks = Markup("\n").join(_block(block) for block in visible(text).split("\n\n"))
    return DisplayResult({"text/html": str(blocks), "text/plain": visible(text)})


def _block(text: str) -> Markup:
    is_table = all("  " in line for line in text.splitlines()[:2])
    space = "pre" if is_table else "pre-wrap"
    style = f"white-space:{space};word-break:normal;overflow-x:auto;margin:0 0 1em"
    return Markup('<pre style="{}">{}</pre>').format(style, text)


class RevisionHandle:
    """Revision of a session, such as ``gelu.best`` or ``gelu[2]``."""

    def __init__(
        self, session: Session, item: Round, candidate: Candidate, workshop: WorkerFunctions
    ) -> None:
        self._session = session
        self._round = item
        self._candidate = candidate
        self._workshop = workshop

    @property
    def name(self) -> str:
        """Label of the revision: ``r0``, ``r1`` and so on."""
        return revision(self._round)

    @property
    def source(self) -> str:
        """Source of the whole kernel file."""
        return self._candidate.source

    @property
    def evaluation(self) -> Evaluation | None:
        """Verdict with correctness, counters and times; None before the evaluation."""
        return self._round.evaluation

    def module(self) -> Any:  # noqa: ANN401 - a proxy of gpu/, whose types are torch's
        """Return a proxy of ``ModelNew`` that takes tensors, runs the kernel in a worker and returns tensors.

        The kernel never runs in this process.
        """
        return self._workshop.make(self._session, self._candidate)

    def __repr__(self) -> str:
        found = self._round.evaluation
        return f"<{self.name} of {self._session.name}: {found.verdict_words if found else 'not evaluated'}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> MimeBundle:  # noqa: ARG002
        return {
            "text/plain": f"{self!r}\n{visible(self.source)}",
            "text/html": without_math(listing(self.source, Style.RECORD)),
        }


class SessionHandle:
    """Session as the variable that ``%%cutegen`` sets; its properties follow the running session.

    ``best``, ``rounds``, ``report()``, ``export("k.py")``; ``handle[2]`` is revision r2.
    """

    def __init__(self, name: str, now: Callable[[], Session | None], workshop: WorkerFunctions) -> None:
        self._name = name
        self._now = now
        self._workshop = workshop

    @property
    def name(self) -> str:
        """Name of the session."""
        session = self._now()
        return session.name if session else self._name

    @property
    def session(self) -> Session:
        """Session as an immutable value. Raises UsageError before the session is open."""
        session = self._now()
        if session is None:
            raise NotebookUsageError(f"{self._name} is not open yet: `%cutegen status` says what it is doing")
        return session

    @property
    def best(self) -> RevisionHandle:
        """Best approved revision. Raises UsageError while there is none."""
        session = self.session
        if session.best is None:
            ended = f" It ended: {ended_words(session.stopped)}." if session.stopped else ""
            raise NotebookUsageError(
                f"no revision of {session.name} is approved yet.{ended} "
                "`%cutegen status` says where it stands"
            )
        return self._revision(session, session.best)

    @property
    def rounds(self) -> pd.DataFrame:
        """DataFrame with a row for each finished round, indexed by revision; it may have no rows yet."""
        import pandas as pd  # noqa: PLC0415 - half a second that only this needs

        names = [item.name for item in dataclasses.fields(RoundSummary)]
        # The relation is named as in the panel's table: no clear difference, same kernel as r0.
        found = [{**dataclasses.asdict(row), "relation": row.relation_words} for row in rows(self.session)]
        table = pd.DataFrame(found, columns=names)
        # A chain has no epochs; without a type of its own one missing number would make the others floats.
        return table.astype({"epoch": "Int64"}).set_index("revision")

    @property
    def narrow_rounds(self) -> pd.DataFrame:
        """Columns of `rounds` that fit a page 800 pixels wide, without figures that no round has."""
        table = self.rounds
        # As the panel writes it: seconds as a number would be 0.000009.
        table["estimate"] = table["estimated_s"].map(duration, na_action="ignore")
        table = table[[*_WORDS, *_FIGURES, "decision"]]
        return table.drop(columns=[name for name in _FIGURES if table[name].isna().all()])

    def __getitem__(self, number: int) -> RevisionHandle:
        """Return revision r`number`. Raises UsageError if there is no such round or it has no candidate."""
        session = self.session
        found = next((item for item in session.rounds if item.number == number), None)
        if found is None or found.candidate is None:
            able = ", ".join(revision(item) for item in session.rounds if item.candidate) or "none yet"
            raise NotebookUsageError(f"{session.name} has no revision r{number}: there is {able}")
        return self._revision(session, found)

    def report(self) -> DisplayResult:
        """Return the record of all finished rounds, for display."""
        return DisplayResult(self._bundle())

    def export(self, path: str, *, unchecked: bool = False) -> str:
        """Write the best kernel (``.py``), the report (``.html``) or the whole session (``.cutegen``).

        A kernel is evaluated at tier C first, and not written if wrong. With `unchecked` this evaluation is
        left out, and the file says so. Returns a sentence on the file. Raises UsageError.
        """
        session = self.session
        judge = None if unchecked else functools.partial(self._workshop.judge, session)
        try:
            return export(session, path, judge)
        except CutegenError as error:
            raise as_notebook_error(error) from error

    def _revision(self, session: Session, item: Round) -> RevisionHandle:
        assert item.candidate is not None
        return RevisionHandle(session, item, item.candidate, self._workshop)

    def _bundle(self) -> MimeBundle:
        session = self._now()
        return record(session) if session else waiting(self._name, "starting …")

    def __repr__(self) -> str:
        return self._bundle()["text/plain"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> MimeBundle:  # noqa: ARG002
        return self._bundle()
