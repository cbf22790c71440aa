"""CuTe DSL's own tensor-core operations through the real compiler, against float64."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(HERE / "bridge_template.py"), "sm_89",
         str(HERE / "programs" / "matrices.py")],
        capture_output=True, text=True, timeout=240, check=False, cwd=tmp_path_factory.mktemp("working"),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "RESULT" in done.stdout, done.stdout[-2000:] + done.stderr[-4000:]
    (found,) = json.loads(done.stdout.rpartition("RESULT")[2])["results"]
    assert "error" not in found, found["error"]
    return found


@pytest.mark.parametrize(
    ("name", "instruction", "bound"),
    [
        ("f16 f16", "m16n8k16.row.col.f16.f16.f16.f16", 0.1),  # four sums of about 16 rounded to float16
        ("f16 f32", "m16n8k8.row.col.f32.f16.f16.f32", 1e-5),
        ("bf16", "m16n8k16.row.col.f32.bf16.bf16.f32", 1e-5),
        ("tf32", "m16n8k8.row.col.f32.tf32.tf32.f32", 1e-5),
        ("e4m3", "m16n8k32.row.col.f32.e4m3.e4m3.f32", 1e-5),
        ("e5m2", "m16n8k32.row.col.f32.e5m2.e5m2.f32", 1e-5),
    ],
)
def test_a_product_of_every_type_is_right_and_counted(products, name, instruction, bound):
    found = products[name]
    assert found["names"] == [f"mma.sync.aligned.{instruction}"]
    assert found["error"] < bound
    kind = "fp8" if name in {"e4m3", "e5m2"} else name.split()[0]
    assert found["flops"] == {f"tensor.{kind}": 2 * 64 * 32 * 64}


def test_tiles_come_through_ldmatrix_plain_and_transposed(products):
    found = products["ldmatrix"]
    assert [one.rpartition("m8n8.")[2] for one in found["names"][:2]] == [
        "x2.trans.shared.b16",
        "x4.shared.b16",
    ]
    assert found["error"] < 1e-5
