"""Several evaluators behind one port: the order in which free places are given, and lost evaluations."""

from __future__ import annotations

import asyncio
import os
import time

import pytest

from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.errors import CutegenError, EvaluationLost, EvaluatorError, EvaluatorLost, WorkerDied
from cutegen_nb.core.evaluation import Evaluation, Judged, Tier, Verdict
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.evaluator import evaluator_pool
from cutegen_nb.evaluator.evaluator_pool import ATTEMPTS, EvaluatorPool, PoolMember
from cutegen_nb.evaluator.host_members import HostMembers
from cutegen_nb.evaluator.process import process_tree

PROBLEM = Problem(name="any", source="any", form=ProblemForm.KERNELBENCH)


class Member:
    """Evaluator whose evaluations wait until the test ends them."""

    def __init__(self, name):
        self.name = name
        self.running = {}
        self.most = 0
        self.asked = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def evaluate(self, problem, candidate, progress, tier=Tier.A, **options):
        self.asked.append((candidate.source, tier, options))
        ending = self.running[candidate.source] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.running))
        try:
            return await ending
        finally:
            del self.running[candidate.source]

    async def facts(self, problem, progress):
        self.asked.append(("facts", problem.digest, {}))
        return self.name

    async def device(self):
        await self.answers.wait()
        return self.name

    def end(self, source):
        verdict = Judged(verdict=Verdict.PASSED)
        self.running[source].set_result(Evaluation(outcome=verdict, summary=source, device=self.name))

    def lose(self, source, error=EvaluationLost):
        self.running[source].set_exception(error(f"{self.name} lost {source}"))


class Source:
    """Members of a pool, with their places: ``{"a": 2}``."""

    def __init__(self, places):
        self.places = places
        self.members = {name: Member(name) for name in places}
        self.opened = self.closed = 0
        self.refusals = []

    async def open(self):
        self.opened += 1
        await asyncio.sleep(0)
        if self.refusals:
            raise self.refusals.pop()
        return [PoolMember(evaluator=self.members[name], places=count) for name, count in self.places.items()]

    async def close(self):
        self.closed += 1


class Pool:
    """A pool of members, and the evaluations that a test asked it for, by their candidates."""

    def __init__(self, places):
        self.source = Source(places)
        self.pool = EvaluatorPool(self.source)
        self.tasks = {}

    def __getattr__(self, name):
        return self.source.members[name]

    async def ask(self, *sources, **options):
        for source in sources:
            candidate = Candidate(source=source, author="test")
            asked = self.pool.evaluate(PROBLEM, candidate, lambda _: None, **options)
            self.tasks[source] = asyncio.ensure_future(asked)
            await settled()

    def where(self):
        """Candidates that run, by member."""
        return {name: sorted(member.running) for name, member in self.source.members.items()}

    async def result(self, source):
        return (await self.tasks[source]).device


async def settled():
    """Let every task go on as far as it can."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_evaluations_fill_every_place_and_the_next_ones_wait_in_their_order():
    async def run():
        pool = Pool({"a": 2, "b": 1})
        await pool.ask("1", "2", "3", "4", "5")
        assert pool.where() == {"a": ["1", "2"], "b": ["3"]}
        pool.b.end("3")
        await settled()
        assert pool.where() == {"a": ["1", "2"], "b": ["4"]}
        assert pool.tasks["3"].done()
        assert not pool.tasks["1"].done()
        pool.a.end("1")
        assert await pool.result("1") == "a"
        await settled()
        assert pool.where() == {"a": ["2", "5"], "b": ["4"]}
        assert pool.a.most == 2

    asyncio.run(run())


def test_the_arguments_of_the_port_reach_the_member():
    async def run():
        pool = Pool({"a": 1})
        rival = Candidate(source="best", author="test")
        await pool.ask("1", tier=Tier.C, rival=rival, only_if_faster=True, profile=True)
        options = {"rival": rival, "only_if_faster": True, "profile": True}
        assert pool.a.asked == [("1", Tier.C, options)]

    asyncio.run(run())


def test_a_lost_evaluation_is_made_again_in_a_member_that_does_nothing_else():
    async def run():
        pool = Pool({"a": 2})
        await pool.ask("1", "2", "3")
        pool.a.lose("1")
        await settled()
        assert pool.where() == {"a": ["2", "3"]}, "it waits behind those that asked before"
        pool.a.end("2")
        await settled()
        assert pool.where() == {"a": ["3"]}, "the free place is not enough"
        await pool.ask("4")
        assert pool.where() == {"a": ["3"]}, "none overtakes it"
        pool.a.end("3")
        await settled()
        assert pool.where() == {"a": ["1"]}
        pool.a.end("1")
        assert await pool.result("1") == "a"
        await settled()
        assert pool.where() == {"a": ["4"]}

    asyncio.run(run())


def test_an_evaluation_that_is_lost_again_and_again_is_given_up_with_the_last_reason():
    async def run():
        pool = Pool({"a": 2})
        await pool.ask("1")
        for _ in range(ATTEMPTS):
            pool.a.lose("1")
            await settled()
        with pytest.raises(EvaluatorError, match="lost 3 times and is given up: a lost 1"):
            await pool.result("1")
        assert len(pool.a.asked) == ATTEMPTS

    asyncio.run(run())


def test_another_error_is_raised_at_once_and_the_place_is_free_again():
    async def run():
        pool = Pool({"a": 1})
        await pool.ask("1", "2")
        pool.a.lose("1", WorkerDied)
        with pytest.raises(WorkerDied):
            await pool.result("1")
        await settled()
        assert pool.where() == {"a": ["2"]}

    asyncio.run(run())


def test_a_lost_evaluator_gets_nothing_until_it_answers_again():
    async def run():
        pool = Pool({"a": 1, "b": 1})
        pool.a.answers.clear()
        await pool.ask("1", "2", "3")
        pool.a.lose("1", EvaluatorLost)
        await settled()
        pool.b.end("2")
        await settled()
        assert pool.where() == {"a": [], "b": ["3"]}
        pool.a.answers.set()
        await settled()
        assert pool.where() == {"a": ["1"], "b": ["3"]}

    asyncio.run(run())


def test_without_any_evaluator_left_all_that_wait_are_told_the_reason(monkeypatch):
    monkeypatch.setattr(evaluator_pool, "_RETURN_S", 0.02)

    async def run():
        pool = Pool({"a": 1})
        pool.a.answers.clear()
        await pool.ask("1", "2")
        pool.a.lose("1", EvaluatorLost)
        for source in ("1", "2"):
            with pytest.raises(EvaluatorError, match="No evaluator is left: a lost 1"):
                await pool.result(source)

    asyncio.run(run())


def test_a_cancelled_evaluation_gives_its_place_or_its_turn_to_the_next():
    async def run():
        pool = Pool({"a": 1})
        await pool.ask("1", "2", "3")
        pool.tasks["2"].cancel()
        pool.tasks["1"].cancel()
        await settled()
        assert pool.where() == {"a": ["3"]}
        assert pool.tasks["1"].cancelled()
        assert pool.tasks["2"].cancelled()
        pool.a.end("3")
        assert await pool.result("3") == "a"
        await pool.ask("4")
        assert pool.where() == {"a": ["4"]}, "no place was lost"

    asyncio.run(run())


def test_a_turn_that_came_while_its_caller_was_cancelled_is_passed_on():
    async def run():
        pool = Pool({"a": 1})
        await pool.ask("1", "2", "3")
        pool.a.end("1")
        await pool.tasks["1"]  # 2 has its turn now and has not run yet
        pool.tasks["2"].cancel()
        await settled()
        assert pool.where() == {"a": ["3"]}

    asyncio.run(run())


def test_members_are_started_once_and_asked_again_where_that_failed():
    async def run():
        pool = Pool({"a": 1})
        pool.source.refusals.append(CutegenError("no GPU today"))
        await pool.ask("1")
        with pytest.raises(CutegenError, match="no GPU today"):
            await pool.result("1")
        await asyncio.gather(pool.ask("2"), pool.ask("3"))
        assert pool.where() == {"a": ["2"]}
        assert pool.source.opened == 2

    asyncio.run(run())


def test_a_problem_is_traced_and_the_device_asked_for_once():
    async def run():
        pool = Pool({"a": 1, "b": 1}).pool
        for _ in range(2):
            assert await pool.facts(PROBLEM, lambda _: None) == "a"
            assert await pool.device() == "a"
        return pool

    pool = asyncio.run(run())
    assert len(pool._source.members["a"].asked) == 1


def test_closing_ends_the_members_and_no_longer_waits_for_a_lost_one():
    async def run():
        pool = Pool({"a": 1, "b": 1})
        pool.a.answers.clear()
        await pool.ask("1")
        pool.a.lose("1", EvaluatorLost)
        await settled()
        pool.b.end("1")
        await pool.tasks["1"]
        await pool.pool.close()
        assert pool.source.closed == 1
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


# --- evaluations in processes of this host -------------------------------------------------------------------------


class Host:
    """Pool over this host's simulator, with two places, in an event loop of its own."""

    def __init__(self, judge):
        self.problem = judge.problem("relu")
        self.source = judge.source
        self.members = HostMembers(
            workers=2, device="simulator", baselines=(), screening=True, say=lambda _: None
        )
        self.pool = EvaluatorPool(self.members)

    def ask(self, source, heard=lambda _: None):
        candidate = Candidate(source=source, author="test")
        return asyncio.ensure_future(self.pool.evaluate(self.problem, candidate, heard))

    @property
    def evaluator(self):
        return self.members._evaluators[0]

    @property
    def template(self):
        return self.evaluator._workers.server.process_id

    def lasting(self, mark=0):
        """The right kernel, whose import takes as long as the template of now lives."""
        lines = f"import os, time\nwhile os.path.exists('/proc/{self.template}'): time.sleep(0.02)\n"
        return self.source("relu").replace("import torch\n", f"import torch\n{lines}", 1) + f"# {mark}\n"

    def kill(self):
        """Kill the template and every process below it."""
        template = self.template
        process_tree.kill(template, *process_tree.descendants(template))


@pytest.fixture(scope="module")
def on_host(judge_class):
    with asyncio.Runner() as runner, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        host = Host(judge_class)
        yield lambda test: runner.run(test(host))
        runner.run(host.pool.close())


async def both_import(asked, said):
    """Wait until the worker of each evaluation has begun to import its candidate."""
    async with asyncio.timeout(60):
        while not all(any("importing" in text for text in one) for one in said):
            assert not any(task.done() for task in asked)
            await asyncio.sleep(0.02)


def left_below(process):
    """Descendants of a process once they have had time to end."""
    until = time.monotonic() + 20
    while process_tree.descendants(process) and time.monotonic() < until:
        time.sleep(0.02)
    return process_tree.descendants(process)


def told(evaluation):
    """The parts of an evaluation that do not depend on the inputs that were drawn."""
    launches = evaluation.profile.launches if evaluation.profile else ()
    counters = [
        (item.kernel, item.grid, item.block, item.counters.gmem_load_bytes, item.counters.gmem_store_bytes)
        for item in launches
    ]
    states = [(item.name, item.state) for item in evaluation.checks]
    return evaluation.outcome, [item.kind for item in evaluation.findings], states, counters


@pytest.mark.long
@pytest.mark.slow
def test_by_two_come_the_same_verdicts_and_counts_as_one_at_a_time(on_host):
    async def test(host):
        sources = [host.source(name) for name in ("relu", "zeros", "raises", "through_shared")]
        one_by_one = [await host.ask(source) for source in sources]
        side_by_side = await asyncio.gather(*map(host.ask, sources))
        assert [told(item) for item in side_by_side] == [told(item) for item in one_by_one]
        assert [item.passed for item in side_by_side] == [True, False, False, True]

    on_host(test)


@pytest.mark.slow
@pytest.mark.long
def test_a_short_evaluation_is_over_while_a_long_one_runs_and_cancelling_that_ends_its_processes(on_host):
    async def test(host):
        assert (await host.ask(host.source("relu"))).passed
        said = []
        long = host.ask(host.lasting(), said.append)
        await both_import([long], [said])
        assert (await host.ask(host.source("relu"))).passed
        assert not long.done()
        long.cancel()
        with pytest.raises(asyncio.CancelledError):
            await long
        assert await asyncio.to_thread(left_below, host.template) == ()

    on_host(test)


@pytest.mark.slow
@pytest.mark.long
def test_processes_that_die_under_two_evaluations_are_no_verdict_on_either(on_host):
    async def test(host):
        assert (await host.ask(host.source("relu"))).passed
        template, said = host.template, ([], [])
        asked = [host.ask(host.lasting(n), said[n].append) for n in range(2)]
        await both_import(asked, said)
        host.kill()
        found = await asyncio.gather(*asked)
        assert [item.passed for item in found] == [True, True], found[0].summary
        assert [one.count("importing the candidate") for one in said] == [2, 2], "each was made again once"
        assert host.template != template

    on_host(test)


@pytest.mark.slow
@pytest.mark.long
def test_without_a_pool_an_evaluator_says_that_no_candidate_is_to_blame(on_host):
    async def test(host):
        assert (await host.ask(host.source("relu"))).passed
        said = [], []
        asked = [
            asyncio.ensure_future(
                host.evaluator.evaluate(
                    host.problem, Candidate(source=host.lasting(n), author="test"), said[n].append
                )
            )
            for n in range(2)
        ]
        await both_import(asked, said)
        host.kill()
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(item) for item in found] == [EvaluationLost, EvaluationLost]

    on_host(test)
