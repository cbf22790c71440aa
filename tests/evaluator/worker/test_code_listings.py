"""PTX and SASS that an evaluation keeps, and the lookup of nvdisasm."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from cutegen_nb.analysis.binary.listing import KernelCode
from cutegen_nb.core.codec import encode
from cutegen_nb.evaluator.worker.code_listings import listings

CUBIN = (Path(__file__).parents[2] / "simulator" / "data" / "spills.sm_80.cubin").read_bytes()
PRINTED = (
    '\t.section\t.text.kernel,"ax",@progbits\n        /*0000*/   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;\n'
)


@pytest.mark.long
def test_an_evaluation_keeps_the_code_whose_executions_are_the_counts_of_its_lines(new_judge):
    judge = new_judge()
    found = judge("relu", "relu")
    ptx, sass = found.code
    (launch,) = found.profile.launches
    counted = {item.line: item.counters.warp_instructions for item in launch.lines if item.is_own}
    ran = Counter()
    for row in ptx.rows():
        ran[row.line] += max(0, row.executions)
    assert {line: amount for line, amount in ran.items() if amount} == counted
    store = judge.line("relu", "y[index]")
    assert "st.global.b32" in [row.text.split()[0] for row in ptx.rows() if row.line == store]
    assert "STG" in [row.text.split()[1].split(".")[0] for row in sass.rows() if row.line == store]
    assert ptx.kernel == sass.kernel == launch.kernel
    assert len(str(encode(found.code))) < 3000


def test_nvdisasm_is_found_on_the_path_and_in_its_package(tmp_path, monkeypatch):
    code = [KernelCode(kernel="kernel", ptx="", cubin=CUBIN)]

    def sass():
        return listings(code, "sm_80", tmp_path)[1].rows()[0].text

    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("cutegen_nb.evaluator.worker.code_listings.locate", lambda _: None)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert sass() == "    /*0000*/ IMAD"
    tool = tmp_path / "nvidia" / "cu13" / "bin" / "nvdisasm"
    tool.parent.mkdir(parents=True)
    tool.write_text(f"#!/bin/sh\n[ -s \"$3\" ] && printf '%s' '{PRINTED}'\n")
    tool.chmod(0o755)
    assert sass() == "    /*0000*/ IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]"
    tool.write_text("#!/bin/sh\nexit 3\n")
    assert sass() == "    /*0000*/ IMAD"


def test_code_that_cannot_be_read_costs_no_verdict(tmp_path):
    assert listings([KernelCode(kernel="k", ptx=".entry k()\n{\n.loc x\nret;\n}")], "sm_80", tmp_path) == ()


def test_each_module_is_disassembled_into_its_own_listing(tmp_path, monkeypatch):
    """The tools run side by side: they may not share a file."""
    tool = tmp_path / "nvdisasm"
    tool.write_text(
        '#!/bin/sh\nsleep 0.2\necho ".section .text.kernel"; echo "/*0000*/ MOV R$(wc -c < $3) ;"\n'
    )
    tool.chmod(0o755)
    monkeypatch.setattr("cutegen_nb.evaluator.worker.code_listings.locate", lambda _: str(tool))
    codes = [KernelCode(kernel="kernel", ptx="", cubin=CUBIN + b"\0" * more) for more in range(3)]
    sass = [one for one in listings(codes, "sm_80", tmp_path) if one.language == "SASS"]
    assert [one.rows()[0].text for one in sass] == [f"    /*0000*/ MOV R{len(code.cubin)}" for code in codes]
