"""History: the machine's knowledge base and the shipped records together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cutegen_nb.analysis.knowledge.gains import recall
from cutegen_nb.core.device import Device
from cutegen_nb.core.errors import StoreError
from cutegen_nb.core.problem import ProblemFacts
from cutegen_nb.core.search.knowledge import RecordSource, StrategyRecord
from cutegen_nb.store.knowledge_base import KnowledgeBase
from cutegen_nb.store.knowledge_file import shipped_records


class StrategyHistory:
    """Records of earlier sessions, read once; a failure is said once and ends no session."""

    def __init__(self, base: KnowledgeBase, say: Callable[[str], None]) -> None:
        self._base = base
        self._say = say
        self._has_failed = False
        self._records: tuple[StrategyRecord, ...] | None = None

    def recall(self, facts: ProblemFacts, device: Device) -> tuple[StrategyRecord, ...]:
        """Return the records of like problems, as `analysis.knowledge.gains.recall` orders them."""
        if self._records is None:
            self._records = every_record(self._own())
        return recall(self._records, facts, device)

    def learn(self, records: Sequence[StrategyRecord]) -> None:
        """Keep records for later sessions."""
        try:
            self._base.learn(records)
        except StoreError as error:
            self._failed(error)

    def _own(self) -> tuple[StrategyRecord, ...]:
        try:
            return self._base.records()
        except StoreError as error:
            self._failed(error)
            return ()

    def _failed(self, error: StoreError) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._say(f"{error}; this session goes on with the shipped strategies alone")


def every_record(own: Sequence[StrategyRecord]) -> tuple[StrategyRecord, ...]:
    """Return the machine's records and the shipped ones, each once.

    Of the same record that of an own session counts before the shipped one, and that before an imported one.
    """
    imported = [item for item in own if item.source is RecordSource.IMPORTED]
    ours = [item for item in own if item.source is not RecordSource.IMPORTED]
    by_digest = {item.digest: item for item in (*imported, *shipped_records(), *ours)}
    return tuple(by_digest.values())
