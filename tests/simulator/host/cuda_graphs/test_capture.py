"""CUDA graphs and stream capture."""

PROGRAM = "cuda_graphs"


def test_a_graph_runs_at_its_replay(outcome):
    assert outcome == "ok", outcome
