"""The compiled reference is made once a problem in a worker of its own, and candidates get copies."""

from __future__ import annotations

import asyncio
import pickle
from types import SimpleNamespace

import pytest

from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import EvaluatorError
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator.timing.compile_cache import CompileCache

PROBLEM = Problem(name="given", source="x = 1\n", form=ProblemForm.KERNELBENCH)
OTHER = Problem(name="given", source="x = 2\n", form=ProblemForm.KERNELBENCH)
WORKLOAD = SimpleNamespace(rewrites=())


class Workers:
    """Workers of a GPU whose requests are answered here."""

    def __init__(self, folder, *, kind=DeviceKind.GPU, answer="compiled"):
        self.folder = folder
        self.kind = kind
        self.answer = answer
        self.asked = []
        self.discarded = []

    async def choice(self):
        return SimpleNamespace(kind=self.kind)

    async def limits(self):
        return None

    async def run(self, request, _limits, heard, **options):
        self.asked.append(request["kind"])
        assert options == {"spare": False, "keep": True}
        if self.answer == "lost":
            raise EvaluatorError("the worker died")
        heard.result = {"kind": self.answer}
        return SimpleNamespace(folder="run")

    async def forks(self):
        return SimpleNamespace(folder=lambda _: self.folder, discard=self.discarded.append)


def filled(workers, *, wanted=True, times=1):
    cache = CompileCache(workers, wanted=wanted)

    async def fill():
        for _ in range(times):
            await cache.begin(PROBLEM, WORKLOAD)
            await cache.ready(PROBLEM, lambda _: None)

    asyncio.run(fill())
    return cache


def test_a_reference_is_compiled_once_and_copied_with_its_own_paths(tmp_path):
    made, now = tmp_path / "made", tmp_path / "worker"
    (made / "triton").mkdir(parents=True)
    (made / "triton" / "__grp__fused.json").write_text(f'{{"cubin": "{made}/triton/fused.cubin"}}')
    (made / "triton" / "fused.cubin").write_bytes(b"code")
    now.mkdir()
    workers = Workers(made)
    cache = filled(workers, times=2)
    assert workers.asked == ["compile"]
    assert cache.copy(PROBLEM, now) == {}
    assert (now / "triton" / "fused.cubin").read_bytes() == b"code"
    assert str(now) in (now / "triton" / "__grp__fused.json").read_text()
    assert str(made) in (made / "triton" / "__grp__fused.json").read_text()


def test_paths_in_pickled_kernels_are_those_of_the_worker(tmp_path):
    # A reduction's kernel keeps the path of its tuning; the worker may open that in its own folder only.
    made, now = tmp_path / "run-0123456789abcdef", tmp_path / "run-fedcba9876543210"
    made.mkdir()
    now.mkdir()
    (made / "kernel").write_bytes(pickle.dumps({"tuning": f"{made}/m3/rows.best_config"}))
    filled(Workers(made)).copy(PROBLEM, now)
    assert pickle.loads((now / "kernel").read_bytes()) == {"tuning": f"{now}/m3/rows.best_config"}


def test_a_pickle_is_not_broken_by_a_longer_path(tmp_path):
    made, now = tmp_path / "run", tmp_path / "longer"
    made.mkdir()
    now.mkdir()
    (made / "kernel").write_bytes(pickle.dumps(str(made)))
    filled(Workers(made)).copy(PROBLEM, now)
    assert pickle.loads((now / "kernel").read_bytes()) == str(made)


@pytest.mark.parametrize("answer", ["refused", "lost"])
def test_a_reference_that_cannot_be_compiled_is_tried_once_and_copies_nothing(tmp_path, answer):
    workers = Workers(tmp_path / "made", answer=answer)
    cache = filled(workers, times=2)
    assert workers.asked == ["compile"]
    assert workers.discarded == (["run"] if answer == "refused" else [])
    assert cache.copy(PROBLEM, tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


def test_another_event_loop_does_not_wait_for_a_compilation_of_this_one(tmp_path):
    began = asyncio.Event()

    class SlowAtFirst(Workers):
        async def run(self, request, *rest, **options):
            answer = await super().run(request, *rest, **options)
            if len(self.asked) == 1:
                began.set()
                await asyncio.Event().wait()
            return answer

    workers = SlowAtFirst(tmp_path)
    cache = CompileCache(workers, wanted=True)
    notebook = asyncio.new_event_loop()

    async def begun():
        await cache.begin(PROBLEM, WORKLOAD)
        await began.wait()

    notebook.run_until_complete(begun())  # it stands still from here on

    async def unattended():
        await cache.begin(PROBLEM, WORKLOAD)
        await cache.ready(PROBLEM, lambda _: None)

    asyncio.run(asyncio.wait_for(unattended(), 10))
    assert workers.asked == ["compile", "compile"]
    notebook.run_until_complete(cache.close())
    notebook.close()


@pytest.mark.parametrize("change", [{"wanted": False}, {"kind": DeviceKind.SIMULATOR}])
def test_nothing_is_compiled_where_nothing_is_timed_against_it(tmp_path, change):
    wanted = change.pop("wanted", True)
    workers = Workers(tmp_path, **change)
    filled(workers, wanted=wanted)
    assert workers.asked == []


class SlowWorkers(Workers):
    """Workers whose compilation ends when the test says so."""

    def __init__(self, folder):
        super().__init__(folder)
        self.end = asyncio.Event()

    async def run(self, request, limits, heard, **options):
        run = await super().run(request, limits, heard, **options)
        await self.end.wait()
        return run


def test_the_reference_is_compiled_while_an_author_writes_and_an_evaluation_waits_for_it(tmp_path):
    async def session():
        workers = SlowWorkers(tmp_path / "made")
        cache, stages = CompileCache(workers, wanted=True), []
        await cache.begin(PROBLEM, WORKLOAD)
        assert workers.asked == []  # the author writes
        for problem in (PROBLEM, OTHER):  # another problem's times are disturbed too
            waiting = asyncio.create_task(cache.ready(problem, stages.append))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert workers.asked == ["compile"]
            assert not waiting.done()
        waiting.cancel()  # by a person: the compilation goes on
        await asyncio.sleep(0)
        workers.end.set()
        await cache.ready(PROBLEM, stages.append)
        (tmp_path / "made").mkdir()
        (tmp_path / "made" / "kernel").write_bytes(b"code")
        cache.copy(PROBLEM, tmp_path / "worker")
        assert set(stages) == {"compiling the reference with torch.compile"}

    asyncio.run(session())
    assert (tmp_path / "worker" / "kernel").read_bytes() == b"code"


def test_evaluators_that_share_folders_wait_for_the_one_that_compiles(tmp_path):
    async def session():
        folders, workers, idle = {}, SlowWorkers(tmp_path), Workers(tmp_path)
        first = CompileCache(workers, wanted=True, folders=folders)
        second = CompileCache(idle, wanted=True, folders=folders)
        await first.begin(PROBLEM, WORKLOAD)
        await second.begin(PROBLEM, WORKLOAD)
        waiting = asyncio.create_task(second.ready(PROBLEM, lambda _: None))
        await second.ready(OTHER, lambda _: None)  # that one has a GPU of its own
        await asyncio.sleep(0)
        assert not waiting.done()
        workers.end.set()
        await waiting
        assert idle.asked == []

    asyncio.run(session())


def test_closing_ends_a_compilation_and_the_next_evaluation_begins_it_again(tmp_path):
    async def session():
        workers = SlowWorkers(tmp_path / "made")
        cache = CompileCache(workers, wanted=True)
        await cache.begin(PROBLEM, WORKLOAD)
        await asyncio.sleep(0)
        await cache.close()
        await cache.ready(PROBLEM, lambda _: None)
        assert cache.copy(PROBLEM, tmp_path) == {}
        workers.end.set()
        await cache.begin(PROBLEM, WORKLOAD)
        await cache.ready(PROBLEM, lambda _: None)
        assert workers.asked == ["compile", "compile"]

    asyncio.run(session())
