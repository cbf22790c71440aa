"""The session as an object in the person's namespace."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cutegen_nb.analysis.summary import RoundSummary, revision, rows
from cutegen_nb.cli.exporting import export
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import CutegenError
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.notebook.faults import NotebookUsageError, as_sentence
from cutegen_nb.notebook.record import record, waiting
from cutegen_nb.report.code import listing
from cutegen_nb.report.markup import Style, visible

if TYPE_CHECKING:
    import pandas as pd

Bundle = dict[str, str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """What a handle has done in the worker."""

    make: Callable[[Session, Candidate], Any]
    """Gives a revision as a callable that runs there."""
    judge: Callable[[Session, Candidate], Evaluation]
    """Judges a revision at the last tier."""


class Shown:
    """HTML with its plain twin, for a cell's result."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    def __repr__(self) -> str:
        return self.bundle["text/plain"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:  # noqa: ARG002
        return self.bundle


class RevisionHandle:
    """One revision of a session: ``gelu.best``, ``gelu[2]``."""

    def __init__(self, session: Session, item: Round, candidate: Candidate, workshop: Workshop) -> None:
        self._session = session
        self._round = item
        self._candidate = candidate
        self._workshop = workshop

    @property
    def name(self) -> str:
        """``r0``, ``r1`` and so on."""
        return revision(self._round)

    @property
    def source(self) -> str:
        """The kernel's file, whole."""
        return self._candidate.source

    @property
    def evaluation(self) -> Evaluation | None:
        """Verdict, correctness, counts or times."""
        return self._round.evaluation

    def module(self) -> Any:  # noqa: ANN401 - a proxy of gpu/, whose types are torch's
        """A stand-in for ``ModelNew``: called with tensors, it runs the kernel in a worker and gives tensors.

        The kernel never runs in this process.
        """
        return self._workshop.make(self._session, self._candidate)

    def __repr__(self) -> str:
        found = self._round.evaluation
        return f"<{self.name} of {self._session.name}: {found.label if found else 'not evaluated'}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:  # noqa: ARG002
        return {
            "text/plain": f"{self!r}\n{visible(self.source)}",
            "text/html": listing(self.source, Style.RECORD),
        }


class SessionHandle:
    """What ``%%cutegen`` leaves in the namespace. It follows the session while that runs.

    ``best``, ``rounds``, ``report()``, ``export("k.py")``; ``handle[2]`` is revision r2.
    """

    def __init__(self, name: str, now: Callable[[], Session | None], workshop: Workshop) -> None:
        self._name = name
        self._now = now
        self._workshop = workshop

    @property
    def name(self) -> str:
        """The session's name."""
        session = self._now()
        return session.name if session else self._name

    @property
    def session(self) -> Session:
        """The session as a value. Raises UsageError before it is open."""
        session = self._now()
        if session is None:
            raise NotebookUsageError(f"{self._name} is not open yet: `%cutegen status` says what it is doing")
        return session

    @property
    def best(self) -> RevisionHandle:
        """The best approved revision. Raises UsageError while there is none."""
        session = self.session
        if session.best is None:
            ended = f" It ended: {session.stopped}." if session.stopped else ""
            raise NotebookUsageError(
                f"no revision of {session.name} is approved yet.{ended} "
                "`%cutegen status` says where it stands"
            )
        return self._revision(session, session.best)

    @property
    def rounds(self) -> pd.DataFrame:
        """A row for each finished round; the columns are there before the first."""
        import pandas as pd  # noqa: PLC0415 - half a second that only this needs

        names = [item.name for item in dataclasses.fields(RoundSummary)]
        table = pd.DataFrame([dataclasses.asdict(row) for row in rows(self.session)], columns=names)
        return table.set_index("revision")

    def __getitem__(self, number: int) -> RevisionHandle:
        """Revision r`number`. Raises UsageError when there is no such round or it has no candidate."""
        session = self.session
        found = next((item for item in session.rounds if item.number == number), None)
        if found is None or found.candidate is None:
            able = ", ".join(revision(item) for item in session.rounds if item.candidate) or "none yet"
            raise NotebookUsageError(f"{session.name} has no revision r{number}: there is {able}")
        return self._revision(session, found)

    def report(self) -> Shown:
        """The whole record, as it stands."""
        return Shown(self._bundle())

    def export(self, path: str, *, unchecked: bool = False) -> str:
        """Write ``.py`` the best kernel, ``.html`` the report, ``.cutegen`` everything.

        A kernel is judged at tier C first, and not written when that finds it wrong; `unchecked` leaves
        this out, and the file says so.
        """
        session = self.session
        judge = None if unchecked else functools.partial(self._workshop.judge, session)
        try:
            return export(session, path, judge)
        except CutegenError as error:
            raise as_sentence(error) from error

    def _revision(self, session: Session, item: Round) -> RevisionHandle:
        assert item.candidate is not None
        return RevisionHandle(session, item, item.candidate, self._workshop)

    def _bundle(self) -> Bundle:
        session = self._now()
        return record(session) if session else waiting(self._name, "starting …")

    def __repr__(self) -> str:
        return self._bundle()["text/plain"]

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:  # noqa: ARG002
        return self._bundle()
