"""The history of strategies: own, shipped and imported records."""

from __future__ import annotations

from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.search.knowledge import RecordSource
from cutegen_nb.store.history import StrategyHistory, every_record
from cutegen_nb.store.knowledge_base import KnowledgeBase
from cutegen_nb.store.knowledge_file import shipped_records
from cutegen_nb.testing import examples


def test_of_one_record_the_own_counts_before_the_shipped_and_that_before_the_imported(record):
    same = shipped_records()[0]
    imported = record(source=RecordSource.IMPORTED)
    own, foreign = (
        type(same)(**{**{name: getattr(same, name) for name in same.__dataclass_fields__}, "source": source})
        for source in (RecordSource.OWN, RecordSource.IMPORTED)
    )
    by_digest = {item.digest: item for item in every_record([foreign, imported])}
    assert by_digest[same.digest].source is RecordSource.SHIPPED
    assert by_digest[imported.digest] == imported
    assert {item.digest: item for item in every_record([own])}[same.digest].source is RecordSource.OWN
    assert len(every_record([own, foreign])) == len(shipped_records())


H200 = Device(
    kind=DeviceKind.GPU, name="NVIDIA H200", architecture="sm_90a", bandwidth_bytes_per_s=4.8e12, peak_flops={},
    source="",
)  # fmt: skip


def test_a_session_recalls_what_earlier_ones_learned_and_the_shipped_records(tmp_path, record):
    base, said = KnowledgeBase(tmp_path), []
    StrategyHistory(base, said.append).learn([record("mine", speedup=9.0)])
    found = StrategyHistory(base, said.append).recall(examples.relu_facts(), H200)
    assert "mine" in {item.strategy.name for item in found}
    assert {item.source for item in found} == {RecordSource.OWN, RecordSource.SHIPPED}
    assert said == []


def test_a_damaged_knowledge_base_is_said_once_and_ends_no_session(tmp_path, record):
    base, said = KnowledgeBase(tmp_path), []
    base.path.write_bytes(b"not a database, and long enough to look like one" * 50)
    history = StrategyHistory(base, said.append)
    history.recall(examples.relu_facts(), H200)
    history.learn([record()])
    assert len(said) == 1
    assert said[0].endswith("this session goes on with the shipped strategies alone")
