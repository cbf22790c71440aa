"""PTX and SASS beside the source: chosen by click and by keys in both lists, and long code."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.long

BUNDLE = Path(__file__).parents[2] / "notebooks" / "sessions" / "product_fp16_simulated.cutegen"
SHOWN = f"""
from dataclasses import replace
from pathlib import Path
from cutegen_nb.core.compiled.listing import CodeListing, CodeRow, packed_rows
from cutegen_nb.notebook.panel import Panel
from cutegen_nb.notebook.view import Live
from cutegen_nb.store.bundle import read_bundle
session = read_bundle(Path({str(BUNDLE)!r}))
last = session.rounds[-1]
made = last.attempts[-1]
kernel = made.evaluation.profile.launches[0].kernel
lines = [item.line for item in made.evaluation.profile.launches[0].lines if item.is_own]
hot, cold = lines[3], lines[0]
ptx = [CodeRow("{{"), CodeRow("    .reg .b32 %r<9>;"), CodeRow("    mov.b32 %r1, <img src=x onerror=alert(1)>;", cold, 7)]
ptx += [CodeRow(f"    add.s32 %r{{n}}, %r1, %r2;", hot if n in (5, 6, 18000) else 0, n) for n in range(20000)]
sass = [CodeRow("    /*0000*/ S2R R0, SR_TID.X", cold), CodeRow("    /*0010*/ @P0 LDG.E R2, [R2.64]", hot)]
code = tuple(
    CodeListing(kernel=kernel, language=name, packed=packed_rows(rows), note=note)
    for name, rows, note in (("PTX", ptx, ""), ("SASS", sass, "Of nvdisasm."))
)
made = replace(made, evaluation=replace(made.evaluation, code=code))
last = replace(last, attempts=(*last.attempts[:-1], made))
session = replace(session, rounds=(*session.rounds[:-1], last))
panel = Panel(lambda message: None)
panel.show(session, Live(ended=session.stopped), None)
print(f"lines {{hot}} {{cold}}")
panel
"""


def test_a_line_marks_its_instructions_and_an_instruction_its_line(desk):
    index = desk.add(SHOWN)
    desk.run(index)
    hot, cold = desk.text(index).partition("lines ")[2].split()[:2]
    panel = desk.panel(index)
    panel.get_by_role("tab", name="PTX and SASS").click()
    source, code = panel.get_by_role("listbox", name="Source"), panel.get_by_role("listbox", name="PTX")
    told = panel.locator(".cgn-code-told")
    marked = '[role="option"][aria-selected="true"]'
    desk.expect(source).to_be_visible()

    # Of 20,000 rows only those in sight are in the page; declarations are left out, and text stays text.
    assert 10 < code.locator('[role="option"]').count() < 80
    code.focus()
    code.press("Home")
    desk.expect(told).to_contain_text(f"Line {cold}: 1 PTX instruction. Simulated counts:")
    desk.expect(code.locator(marked)).to_contain_text("<img src=x onerror=alert(1)>")
    desk.expect(code.locator('[role="option"]').first).to_contain_text("mov.b32")
    desk.expect(source.locator(marked)).to_contain_text(cold)
    assert panel.locator(".cgn-code img").count() == 0
    code.press("ArrowDown")
    desk.expect(told).to_contain_text("came from no line of the file")

    # From the sixth of these rows to a line of the source, and from there to its other place.
    code.locator('[data-index="6"]').click()
    desk.expect(told).to_contain_text(f"Line {hot}: 3 PTX instructions in 2 places.")
    desk.expect(source.locator(marked)).to_contain_text(hot)
    panel.get_by_role("button", name="Next place of this line").click()
    desk.expect(code.locator(".cgn-row-active")).to_contain_text("%r18000")
    code.press("p")
    desk.expect(code.locator(".cgn-row-active")).to_contain_text("%r5,")
    code.press("n")
    desk.expect(code.locator(".cgn-row-active")).to_contain_text("%r18000")
    desk.expect(code.locator(".cgn-row-active")).to_contain_text("18.0k")
    assert code.locator('[role="option"]').count() < 80
    desk.expect(panel.get_by_role("button", name="Next place of this line")).to_have_attribute(
        "aria-disabled", "true"
    )

    # By keys in the source, which moves the code; the language is kept with the line.
    source.focus()
    source.press("ArrowUp")
    source.press("ArrowDown")
    desk.expect(code.locator(marked)).to_have_count(2)
    active = code.locator(".cgn-row-active").get_attribute("id")
    desk.expect(code).to_have_attribute("aria-activedescendant", active)
    panel.get_by_role("button", name="SASS", exact=True).click()
    sass = panel.get_by_role("listbox", name="SASS")
    desk.expect(sass.locator(marked)).to_contain_text("LDG.E R2")
    desk.expect(panel.get_by_text("Of nvdisasm.")).to_be_visible()
    desk.expect(panel.get_by_role("button", name="SASS", exact=True)).to_be_focused()
    for theme in ("dark", "light"):
        desk.set_theme(theme)
        desk.shot(f"code-{theme}", ".cgn-code")
    assert desk.errors == []
