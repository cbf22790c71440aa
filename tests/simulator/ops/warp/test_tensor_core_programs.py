"""CuTe DSL's own tensor-core operations through the real compiler, against float64."""

import pytest


@pytest.fixture(scope="module")
def products(simulator_on):
    return simulator_on("sm_89").run("matrices")


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
