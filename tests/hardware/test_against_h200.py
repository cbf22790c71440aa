"""The simulator against results recorded on an NVIDIA H200: the same kernels, compiled alike, on the same inputs."""

import io
import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from suite import batches, comparison, samples

HERE = Path(__file__).parent
DATA = HERE / "data"
RECORD, VALUES, EXPLAINED = DATA / "h200.json", DATA / "h200.npz.xz", DATA / "explained.json"
CASES = {one.name: one for one in batches.all_cases()}
FAMILIES = list(dict.fromkeys(one.family for one in CASES.values()))

recorded_only = pytest.mark.skipif(
    not RECORD.exists(),
    reason="no H200 results are recorded yet; on a GPU host run `python tests/hardware/record.py --out FOLDER`",
)


def test_names_are_unique_and_every_case_has_inputs_of_its_own_size():
    listed = batches.all_cases()
    assert len(CASES) == len(listed)
    for one in listed:
        assert sum(values.nbytes for values in samples.inputs_of(one)) == one.input_bytes, one.name


def test_inputs_are_the_same_each_time():
    one = CASES["fma.rn.f32"]
    assert samples.digest(one) == samples.digest(one)


def run(script, folder, *words):
    command = [sys.executable, "-W", "ignore", str(HERE / script), "--simulate", "--out", str(folder), *words]
    finished = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert finished.returncode == 0, finished.stderr[-2000:]
    return finished.stdout


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("simulated")
    printed = run("record.py", folder)
    record = json.loads((folder / "results.json").read_text())
    with np.load(folder / "results.npz") as loaded:
        values = {name: loaded[f"case{index}"] for index, name in enumerate(record["cases"])}
    return values, record["failures"], [line for line in printed.splitlines() if line.startswith("FINDING")]


@pytest.fixture(scope="module")
def recorded():
    record = json.loads(RECORD.read_text())
    with np.load(io.BytesIO(lzma.decompress(VALUES.read_bytes()))) as loaded:
        return {
            name: (digest, loaded[f"case{index}"])
            for index, (name, digest) in enumerate(record["cases"].items())
        }


@pytest.fixture(scope="module")
def explained():
    return json.loads(EXPLAINED.read_text()) if EXPLAINED.exists() else {}


@pytest.mark.long
@recorded_only
@pytest.mark.parametrize("family", FAMILIES)
def test_the_simulator_gives_what_the_h200_gave(family, simulated, recorded, explained):
    values, failures, _ = simulated
    told = []
    for name, case in CASES.items():
        if case.family != family:
            continue
        if name in explained.get("not_recorded", {}):
            continue
        digest, hardware = recorded.get(name, ("", None))
        if hardware is None or digest != samples.digest(case):
            told.append(f"{name}: the recording lacks it or was made with other inputs; record again")
            continue
        if name in failures:
            found = [failures[name].strip().splitlines()[-1]]
        else:
            found = comparison.differences(case, hardware, values[name])
        reason = explained.get("values", {}).get(name)
        if found and not reason:
            told.append(f"{name}: " + " | ".join(found))
        if reason and not found:
            told.append(f"{name}: agrees now; take its explanation away")
    assert not told, "\n".join(told)


@pytest.mark.long
def test_no_case_is_accused_of_a_fault(simulated):
    assert simulated[2] == []


@recorded_only
def test_the_recording_says_where_it_was_made():
    machine = json.loads(RECORD.read_text())["machine"]
    assert "H200" in machine["device"]
    assert machine["driver"]
    assert machine["date"]
