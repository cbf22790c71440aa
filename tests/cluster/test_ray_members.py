"""Evaluations by actors of a Ray cluster: several at once, lost actors and nodes, errors, the order of answers."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace

import pytest

from cutegen_nb.cli import main
from cutegen_nb.cluster.ray_members import RayMembers
from cutegen_nb.core.device import DeviceKind
from cutegen_nb.core.errors import DeviceUnavailable, EvaluatorError, EvaluatorLost, ProblemError
from cutegen_nb.core.evaluation import Judged, Verdict
from cutegen_nb.evaluator.evaluator_pool import EvaluatorPool

ray = pytest.importorskip("ray", reason="ray is not installed: `make test-cluster` runs these tests")
pytestmark = pytest.mark.slow


def silent(_: str) -> None:
    """Progress that nobody reads."""


def verdict(evaluation) -> Verdict:
    assert isinstance(evaluation.outcome, Judged), evaluation.summary
    return evaluation.outcome.verdict


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_several_slots_are_judged_at_once_and_each_answer_belongs_to_its_candidate(members, problem, kernel):
    scales = [0.5, 1.0, 2.0, 1, 3.0]
    said: list[list[str]] = [[] for _ in scales]

    async def play():
        pool = EvaluatorPool(members())
        try:
            device = await pool.device()
            questions = [
                pool.evaluate(problem, kernel(scale), heard.append)
                for scale, heard in zip(scales, said, strict=True)
            ]
            return device, await asyncio.gather(*questions)
        finally:
            await pool.close()

    device, answers = asyncio.run(play())
    assert device.kind is DeviceKind.SIMULATOR
    assert [verdict(answer) for answer in answers] == [
        Verdict.PASSED if scale == 1 else Verdict.WRONG_VALUES for scale in scales
    ]
    # Each wrong kernel has an error of its own, by which its answer is known.
    errors = [answer.correctness.outputs[0].relative_l2_error for answer in answers]
    assert errors == pytest.approx([0.5, 0.0, 1.0, 0.0, 2.0], abs=1e-3)
    traced = [line for heard in said for line in heard if line.startswith("tracing the problem")]
    assert len(traced) == 1, "a problem is traced once for all actors"
    assert all(any(line.startswith("evaluating on ") for line in heard) for heard in said)
    assert not ray.is_initialized(), "the connection was made here, and ends here"


def test_an_evaluation_of_an_actor_that_dies_is_made_again(members, problem, kernel):
    async def play():
        source = members()
        pool = EvaluatorPool(source)
        try:
            await pool.facts(problem, silent)
            begun = asyncio.Event()

            def heard(text: str) -> None:
                if text.startswith("evaluating on "):
                    begun.set()

            question = asyncio.ensure_future(pool.evaluate(problem, kernel(1.0), heard))
            await begun.wait()
            await asyncio.sleep(0.1)
            first = source._evaluators[0]
            ray.kill(first._actor, no_restart=False)
            answer = await question
            # The actor is started again, takes its place in the pool, and answers.
            await asyncio.wait_for(first.device(), 180)
            return answer, await first.evaluate(problem, kernel(2.0), silent)
        finally:
            await pool.close()

    answer, after = asyncio.run(play())
    assert verdict(answer) is Verdict.PASSED
    assert verdict(after) is Verdict.WRONG_VALUES


def test_without_a_pool_a_lost_actor_is_an_error_that_names_the_place(members, problem, kernel):
    async def play():
        source = members(workers=1)
        try:
            (member,) = await source.open()
            await member.evaluator.facts(problem, silent)
            question = asyncio.ensure_future(member.evaluator.evaluate(problem, kernel(1.0), silent))
            await asyncio.sleep(0.1)
            ray.kill(member.evaluator._actor)
            with pytest.raises(EvaluatorLost, match=r"ended with its process or node; `ray status` lists"):
                await question
        finally:
            await source.close()

    asyncio.run(play())


def test_a_cancelled_evaluation_gives_its_actor_back(members, problem, kernel):
    async def play():
        pool = EvaluatorPool(members(workers=1))
        try:
            await pool.facts(problem, silent)
            begun = asyncio.Event()
            question = asyncio.ensure_future(
                pool.evaluate(
                    problem, kernel(1.0), lambda text: begun.set() if text.startswith("evaluating") else None
                )
            )
            await begun.wait()
            await asyncio.sleep(0.1)
            question.cancel()
            with pytest.raises(asyncio.CancelledError):
                await question
            return await pool.evaluate(problem, kernel(2.0), silent)
        finally:
            await pool.close()

    assert verdict(asyncio.run(play())) is Verdict.WRONG_VALUES


def test_an_error_of_the_actor_is_raised_here_as_what_it_is(members, problem):
    async def play():
        pool = EvaluatorPool(members(workers=1))
        try:
            await pool.facts(replace(problem, source="import torch\nraise RuntimeError('no way')\n"), silent)
        finally:
            await pool.close()

    with pytest.raises(ProblemError, match="no way"):
        asyncio.run(play())


def test_more_workers_than_the_cluster_has_room_for_are_fewer_and_said(members):
    said: list[str] = []

    async def play():
        source = members(workers=5, say=said.append)
        try:
            return len(await source.open())
        finally:
            await source.close()

    assert asyncio.run(play()) == 2
    assert said == ["--workers 5: the Ray cluster has 2 CPUs, one for each evaluation."]


def test_a_gpu_that_no_node_has_is_refused(members, cluster):
    async def play():
        source = members(device="cuda")
        try:
            await source.open()
        finally:
            await source.close()

    with pytest.raises(DeviceUnavailable, match=r"has no GPU; use --device simulator, or add a GPU node"):
        asyncio.run(play())
    assert not ray.is_initialized()


def test_a_cluster_that_is_not_there_is_one_sentence():
    source = RayMembers(
        address=f"127.0.0.1:{free_port()}",
        workers=1, device="simulator", baselines=(), screening=True, say=silent,
    )  # fmt: skip
    with pytest.raises(
        EvaluatorError, match=r"No Ray cluster answered at 127.0.0.1:\d+ .*--ray local needs none"
    ):
        asyncio.run(source.open())
    assert not ray.is_initialized()


def test_a_population_is_evaluated_on_the_cluster_by_the_command(cluster, problem, tmp_path, capsys):
    path = tmp_path / "relu.py"
    path.write_text(problem.source)
    command = ["run", str(path), "--author", "offline", "--population", "2", "--epochs", "1", "--json"]
    where = [
        "--ray",
        cluster.address,
        "--workers",
        "2",
        "--device",
        "simulator",
        "--store",
        str(tmp_path / "store"),
    ]
    assert main([*command, *where]) == 0
    told = capsys.readouterr()
    found = json.loads(told.out)
    first, *slots = found["rounds"]
    assert first["slot"] is None
    assert len(slots) >= 2
    # The slots are judged at once, and recorded in the order of their ends.
    assert [item["number"] for item in slots] == list(range(1, len(slots) + 1))
    assert sorted(item["slot"]["number"] for item in slots) == list(range(1, len(slots) + 1))
    assert [item["epoch"] for item in found["epochs"]] == [1]
    assert {item["verdict"] for item in found["rounds"] if item["candidate"]} == {"PASSED"}
    assert not ray.is_initialized()


def test_a_node_that_is_lost_costs_no_evaluation(members, cluster, losing_a_node, problem, kernel):
    async def play():
        pool = EvaluatorPool(members())
        try:
            await pool.facts(problem, silent)
            questions = [
                asyncio.ensure_future(pool.evaluate(problem, kernel(scale), silent))
                for scale in (1.0, 2.0, 3.0)
            ]
            await asyncio.sleep(0.1)
            await asyncio.to_thread(cluster.remove_node, cluster.second, allow_graceful=False)
            return await asyncio.gather(*questions)
        finally:
            await pool.close()

    answers = asyncio.run(play())
    assert [verdict(answer) for answer in answers] == [
        Verdict.PASSED,
        Verdict.WRONG_VALUES,
        Verdict.WRONG_VALUES,
    ]
