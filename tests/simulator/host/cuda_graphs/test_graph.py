"""A captured graph runs its steps at each replay, in their order."""

from cutegen_nb.simulator.host.cuda_graphs.graph import CapturedGraph


def test_a_replay_works_on_what_memory_holds_then():
    memory = [1]
    graph = CapturedGraph(steps=[lambda: memory.append(memory[-1] * 2), lambda: memory.append(0)])
    graph.replay()
    assert memory == [1, 2, 0]
    memory[-1] = 5
    graph.replay()
    assert memory == [1, 2, 5, 10, 0]
    CapturedGraph().replay()
