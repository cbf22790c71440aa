"""The main job through the command line: real kernels, the real compiler, the real simulator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cutegen_nb.cli import main
from cutegen_nb.core.search.population import MoveKind
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.store.knowledge_base import KnowledgeBase, knowledge_folder
from cutegen_nb.store.sqlite import SqliteStore

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]
ROOT = Path(__file__).parents[2]

ADD = """import torch


class Model(torch.nn.Module):
    def forward(self, a, b):
        return a + b


def get_inputs():
    return [torch.randn(33, 129), torch.randn(33, 129)]


def get_init_inputs():
    return []
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("run")
    (path / "add.py").write_text(ADD)
    return path


@pytest.fixture(autouse=True)
def in_the_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CUTEGEN_MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_the_floor_of_a_problem_without_a_gpu_is_that_of_the_gpu_times_are_estimated_for(capsys):
    assert main(["problem", "add.py", "--device", "simulator"]) == 0
    assert "on NVIDIA H200 memory allows no kernel under" in " ".join(capsys.readouterr().out.split())


@pytest.fixture(scope="module")
def offline_run(folder) -> dict[str, object]:
    """One run of the offline author, shared by the tests that look at what it left."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "cutegen_nb",
            "run",
            "add.py",
            "--device",
            "simulator",
            "--rounds",
            "2",
            "--json",
        ],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "r0" in done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
def test_run_prints_one_object_with_rounds_and_best(offline_run):
    assert offline_run["session"] == "add"
    assert offline_run["problem"]["class"] == "element-wise"
    assert offline_run["device"]["kind"] == "simulator"
    assert [item["verdict"] for item in offline_run["rounds"]] == ["PASSED"] * len(offline_run["rounds"])
    assert offline_run["rounds"][0]["relation"] == "first"
    assert offline_run["rounds"][0]["decided_by"] == "policy:auto"
    assert offline_run["rounds"][0]["counters"]["gmem_sectors"] > 0
    assert offline_run["best"]["approved"] is True
    assert offline_run["stopped"]


@pytest.mark.long
def test_the_report_is_one_file_that_fetches_nothing(offline_run):
    text = Path(offline_run["report"]).read_text()
    assert "ModelNew" in text
    assert "<script src" not in text
    assert main(["report", "add", "-o", "again.html", "--json"]) == 0
    assert Path("again.html").exists()


@pytest.mark.long
def test_a_report_goes_where_that_of_the_run_is_if_no_file_is_named(offline_run, capsys):
    written = Path(offline_run["report"])
    written.unlink()
    assert main(["report", "add", "--whole", "all"]) == 0
    assert written.exists()
    assert str(written) in capsys.readouterr().out
    assert main(["report", "ad"]) != 0
    assert "add" in capsys.readouterr().err


@pytest.mark.long
def test_the_same_command_again_goes_on_from_the_stored_rounds(offline_run, capsys):
    status = main(["run", "add.py", "--device", "simulator", "--rounds", "2", "--json"])
    out, err = capsys.readouterr()
    assert status == 0
    assert json.loads(out)["rounds"] == offline_run["rounds"]
    assert "goes on after" in err


@pytest.mark.long
def test_a_changed_problem_under_the_name_of_a_stored_session_is_told_its_own_name(
    offline_run, folder, tmp_path, capsys
):
    store = ["--store", str(tmp_path / "kept")]
    (folder / "changed.py").write_text(ADD.replace("a + b", "a - b"))
    for file in ("add.py", "changed.py"):
        main(["run", file, "--name", "sum", "--device", "simulator", "--rounds", "1", *store])
    told = "sum is stored with another source, device or library policy: this session is sum_2"
    assert capsys.readouterr().err.count(told) == 1


@pytest.mark.long
def test_a_session_is_resumed_by_its_name_without_the_file(offline_run, tmp_path, monkeypatch, capsys):
    folder = str(Path(".cutegen").resolve())
    with SqliteStore(Path(folder)) as store:
        apart = replace(store.load("add"), name="apart")
        store.create(replace(apart, rounds=apart.rounds[:1], stopped=""))
    monkeypatch.chdir(tmp_path)
    assert main(["resume", "apart", "--rounds", "2", "--store", folder, "--no-history", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert "apart goes on after 1 stored round\n" in err
    assert (found["session"], found["author"]) == ("apart", "offline")
    assert [item["candidate"] for item in found["rounds"]] == [
        item["candidate"] for item in offline_run["rounds"]
    ]
    assert main(["resume", "--store", folder, "--json"]) == 0, "the newest, whose rounds are spent"
    assert "apart goes on after 2 stored rounds; its 2 rounds are spent: --rounds gives more" in (
        capsys.readouterr().err
    )


def test_a_store_in_which_no_session_began_has_none_to_resume(tmp_path, capsys):
    SqliteStore(tmp_path).close()
    assert main(["resume", "--store", str(tmp_path)]) == 2
    assert (
        f"no session is stored in {tmp_path / 'sessions.sqlite'}: `cutegen-nb run" in capsys.readouterr().err
    )


@pytest.mark.long
def test_the_session_is_listed(offline_run, capsys):
    assert main(["sessions", "--json"]) == 0
    listed = [item for item in json.loads(capsys.readouterr().out) if item["session"] == "add"]
    assert listed[0]["best"] == offline_run["best"]["revision"]
    assert main(["sessions"]) == 0
    assert "element-wise" in capsys.readouterr().out


@pytest.mark.long
def test_the_best_kernel_passes_when_it_is_evaluated_again(offline_run, capsys):
    with SqliteStore(Path(".cutegen"), writable=False) as store:
        best = store.load("add").best
    Path("best.py").write_text(best.candidate.source)
    assert main(["evaluate", "add.py", "best.py", "--device", "simulator", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "PASSED"
    assert found["correctness"]["outputs"][0]["matches"] is True
    launch = found["launches"][0]
    assert launch["resources"]["registers"] > 0
    assert launch["occupancy"]["active_ctas"] >= 1
    assert (
        sum(line.get("gmem_load_sectors", 0) for line in launch["lines"])
        == (launch["counters"]["gmem_load_sectors"])
    )
    assert '"_"' not in json.dumps(found)


def test_a_candidate_that_fails_is_status_1_with_its_verdict(capsys):
    Path("torch_only.py").write_text("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n")
    assert main(["evaluate", "add.py", "torch_only.py", "--device", "simulator"]) == 1
    assert "SCREENED_OUT" in capsys.readouterr().out


@pytest.fixture
def model_server():
    """A server that speaks the API and answers from a list, then again its last answer."""
    answers: list[str] = []
    asked: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            text = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for content, finish in ((text, None), (None, "stop")):
                choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
                event = {
                    "id": "1",
                    "object": "chat.completion.chunk",
                    "created": 1,
                    "model": "m",
                    "choices": [choice],
                }
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, *arguments: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1", answers, asked
    http.shutdown()
    http.server_close()


@pytest.mark.long
def test_a_model_behind_a_server_writes_prose_a_broken_kernel_and_repairs_it(model_server, capsys):
    """The repaired kernel is the contract's own example, which so is shown to be right."""
    url, answers, asked = model_server
    example = shipped_library().text("example_add.py.txt")
    broken = example.replace("mA[i] + mB[i]", "mA[i] - mB[i]")
    edit = (
        "<<<<<<< SEARCH\n        mC[i] = mA[i] - mB[i]\n=======\n"
        "        mC[i] = mA[i] + mB[i]\n>>>>>>> REPLACE\n"
    )
    answers += [
        "I would use tiles.",
        f"Rationale: the sum.\n```python\n{broken}```",
        "Line 16 subtracts.",
        f"Rationale: add.\n{edit}",
    ]
    arguments = [
        "run",
        "add.py",
        "--name",
        "by_model",
        "--author",
        "openai",
        "--model",
        "m",
        "--base-url",
        url,
    ]

    status = main([*arguments, "--device", "simulator", "--rounds", "1", "--json"])

    found = json.loads(capsys.readouterr().out)
    assert status == 0, found
    with SqliteStore(Path(".cutegen"), writable=False) as store:
        attempts = store.load("by_model").rounds[0].attempts
    labels = [attempt.evaluation.label if attempt.evaluation else "" for attempt in attempts]
    assert labels == ["not judged: REPLY_UNUSABLE", "WRONG_VALUES", "", "PASSED"]
    assert found["best"]["attempts"] == 4
    assert len(asked) == 4


@pytest.mark.long
def test_a_person_answers_by_file(capsys):
    example = shipped_library().text("example_add.py.txt")
    Path(".cutegen/prompts").mkdir(parents=True, exist_ok=True)
    Path(".cutegen/prompts/by_hand-0-reply.md").write_text(f"```python\n{example}```")
    arguments = ["run", "add.py", "--name", "by_hand", "--author", "manual", "--device", "simulator"]

    assert main([*arguments, "--rounds", "1"]) == 0

    assert "# The reference" in Path(".cutegen/prompts/by_hand-0.md").read_text()
    assert "PASSED" in capsys.readouterr().out


@pytest.mark.long
def test_what_makes_a_comparison_doubtful_is_told_before_the_first_round(folder, capsys):
    (folder / "unread.py").write_text(ADD.replace("a + b", "a + 1"))
    note = "Note: the reference does not read its input b."
    main(["run", "unread.py", "--device", "simulator", "--rounds", "1"])
    assert note in capsys.readouterr().err
    (folder / "empty.py").write_text("import torch\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n")
    main(["evaluate", "unread.py", "empty.py", "--device", "simulator"])
    assert note in capsys.readouterr().err


@pytest.mark.long
def test_a_population_runs_its_epoch_for_a_named_gpu_and_leaves_no_history(capsys):
    options = ["--population", "2", "--epochs", "1", "--workers", "2", "--target", "A100", "--no-history"]
    status = main(["run", "add.py", "--name", "evolved", *options, "--device", "simulator", "--json"])
    found = json.loads(capsys.readouterr().out)

    assert status == 0
    assert found["stopped"] == "the budget of 1 epoch is spent"
    (epoch,) = found["epochs"]
    assert 1 <= len(epoch["members"]) <= 2
    slots = [item["slot"] for item in found["rounds"] if item["slot"]]
    assert [(slot["epoch"], slot["move"]) for slot in slots] == [(1, "extend"), (1, "extend")]
    assert all(item["estimated_s"] > 0 for item in found["rounds"] if item["approved"])
    assert not KnowledgeBase(knowledge_folder()).path.exists()

    assert main(["population", "evolved"]) == 0
    told = capsys.readouterr().out
    assert "Epoch 1: " in told
    assert main(["report", "evolved", "-o", "evolved.html"]) == 0
    assert '<h2 id="population">Population</h2>' in Path("evolved.html").read_text()


SOFTMAX = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn(520, 40)]


def get_init_inputs():
    return []
"""


@pytest.mark.long
def test_a_population_of_the_offline_author_joins_two_kernels_in_a_child(capsys):
    Path("softmax.py").write_text(SOFTMAX)
    options = ["--population", "2", "--epochs", "2", "--workers", "2", "--no-history"]
    assert main(["run", "softmax.py", *options, "--device", "simulator", "--json"]) == 0
    capsys.readouterr()
    with SqliteStore(Path(".cutegen")) as store:
        session = store.load("softmax")
    (child,) = [item for item in session.rounds if item.slot and item.slot.move is MoveKind.CROSS]
    base, other = (session.round_of(digest) for digest in child.slot.parents)
    joined = {base.strategy.name, other.strategy.name}
    assert joined == {"warp-per-row", "vectorise-128"}
    assert set(child.strategy.parents) == joined
    assert child.evaluation.passed
    assert child.candidate.source.splitlines()[0] == (
        f'"""softmax in CuTe DSL: {base.strategy.name}, {other.strategy.name}."""'
    )
    codes = [item.candidate.digest for item in session.rounds if item.candidate]
    assert len(codes) == len(set(codes)), "no slot repeats a kernel"


@pytest.mark.long
def test_an_interrupt_ends_the_worker_and_keeps_the_finished_rounds(folder):
    process = subprocess.Popen(
        [sys.executable, "-m", "cutegen_nb", "run", "add.py", "--name", "cut", "--device", "simulator"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("r0"):
            break
    workers = _descendants(process.pid)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)

    assert process.returncode == 130
    assert "interrupted" in err
    assert "Traceback" not in err
    with SqliteStore(folder / ".cutegen") as store:
        assert len(store.load("cut").rounds) >= 1
    deadline = time.monotonic() + 60
    while (alive := [pid for pid in workers if _parent(pid) is not None]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers
    assert not alive


def _parent(pid: int) -> int | None:
    """The parent of a process; None when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[1])


def _descendants(root: int) -> list[int]:
    parents = {int(e.name): _parent(int(e.name)) for e in Path("/proc").iterdir() if e.name.isdigit()}
    found, wanted = [], {root}
    while wanted:
        wanted = {pid for pid, parent in parents.items() if parent in wanted}
        found += wanted
    return found
