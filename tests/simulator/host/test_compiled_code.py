"""Names and lines of machine instructions, against ``nvdisasm`` and against what is known of a file."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from cutegen_nb.analysis.binary.cubin import resources_of
from cutegen_nb.analysis.binary.elf import sections_of
from cutegen_nb.analysis.binary.machine_code import instructions
from cutegen_nb.core.profile import CodeLine
from cutegen_nb.simulator.host.compiled_code import code_of
from cutegen_nb.simulator.ptx import parser as ptx

DATA = Path(__file__).parents[1] / "data"
TEXTS = sorted(DATA.glob("*.ptx"))
ASSEMBLED = [
    (path, architecture)
    for path in TEXTS
    for architecture in ("sm_80", "sm_90a", "sm_120a")
    if "sm_80" in path.name or architecture == "sm_90a"
]
_LISTED = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
_WIDTH = re.compile(r"\.[US]?(8|16|64|128)(?=\.|$)")


def tool(name):
    """A program of the CUDA toolkit, from the path or as Triton carries it."""
    found = shutil.which(name)
    if found:
        return found
    triton = find_spec("triton")
    folder = Path(triton.origin).parent if triton and triton.origin else Path("/nowhere")
    carried = folder / "backends" / "nvidia" / "bin" / name
    return str(carried) if carried.is_file() else ""


def listed(cubin, folder):
    """Lines of nvdisasm for each offset of each kernel."""
    file = folder / "k.cubin"
    file.write_bytes(cubin)
    done = subprocess.run(
        [tool("nvdisasm"), "-c", str(file)], capture_output=True, text=True, timeout=60, check=True
    )
    found, kernel = {}, ""
    for line in done.stdout.splitlines():
        heading = re.match(r"\s*\.section\s+\.text\.([^\s,]+)", line)
        kernel = heading[1] if heading else kernel
        if item := _LISTED.search(line):
            found.setdefault(kernel, {})[int(item[1], 16)] = item[2]
    return found


def plain(name):
    """An instruction's name as the disassembler writes it, cut to what is read here."""
    first = name.split(".")[0].replace("REDG", "RED")
    if first in {"LD", "LDG", "LDS", "LDL", "ST", "STG", "STS", "STL", "LDGSTS"}:
        widths = _WIDTH.findall(name)
        return f"{first}.{widths[-1] if widths else 32}"
    return first


@pytest.mark.skipif(not tool("nvdisasm") or not tool("ptxas"), reason="no nvdisasm and ptxas here")
@pytest.mark.parametrize(("path", "architecture"), ASSEMBLED, ids=lambda one: getattr(one, "name", one))
def test_every_instruction_has_the_disassemblers_name(path, architecture, tmp_path):
    cubin = tmp_path / "made.cubin"
    made = subprocess.run(
        [tool("ptxas"), "-arch", architecture, str(path), "-o", str(cubin)],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip(f"this ptxas does not take it: {made.stderr[:200]}")
    wanted = listed(cubin.read_bytes(), tmp_path)
    for section in sections_of(cubin.read_bytes()):
        if section.name.startswith(".text."):
            found = {
                offset: name.replace("REDG", "RED")
                for offset, name in instructions(section.data, architecture)
            }
            names = wanted[section.name.removeprefix(".text.")]
            assert found == {
                offset: plain(name) for offset, name in names.items() if not name.startswith("NOP")
            }


def test_a_cubin_without_lines_has_its_instructions_all_the_same():
    cubin = (DATA / "spills.sm_80.cubin").read_bytes()
    module = ptx.parse(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry kernel()\n{\nret;\n}\n"
    )
    code = code_of(module.kernels["kernel"], cubin, "sm_80")
    assert code.language == "SASS"
    assert code.instructions["STL.32"] * 4 >= resources_of(cubin, "sm_80")["kernel"].spill_store_bytes
    assert code.lines == ()


def test_without_machine_code_the_text_before_it_tells():
    module = ptx.parse((DATA / "product.sm_80.ptx").read_text())
    (kernel,) = module.kernels.values()
    code = code_of(kernel, b"", "sm_80")
    assert code.language == "PTX"
    assert code.instructions["fma.f32"] > 0
    assert {"ld.global.32", "st.global.32"} <= code.instructions.keys()
    assert sum(line.instructions for line in code.lines) <= len(kernel.body)
    assert all(isinstance(line, CodeLine) and line.line > 0 for line in code.lines)


def test_shapes_of_matrix_products_are_told_with_their_types():
    text = """.version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k()
    {
    .reg .b32 %r<9>;
    .reg .f32 %f<9>;
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6},
      {%f1,%f2,%f3,%f4};
    ret;
    }"""
    code = code_of(ptx.parse(text).kernels["k"], b"", "sm_80")
    assert code.mma_shapes == {"m16n8k16.f32.f16.f16.f32": 1}
