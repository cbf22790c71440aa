"""`cutegen-nb instructions`: the supported set by architecture, from the machine itself."""

import json

from cutegen_nb.cli.main import main


def answer(capsys, *arguments):
    assert main(["instructions", *arguments]) == 0
    return capsys.readouterr().out


def test_json_lists_forms_by_architecture_and_what_is_missing(capsys):
    old = json.loads(answer(capsys, "--arch", "sm_80", "--json"))
    new = json.loads(answer(capsys, "--json"))
    names = [{one["instruction"] for one in found["simulated"]} for found in (old, new)]
    assert (old["architecture"], new["architecture"]) == ("sm_80", "sm_100a")
    assert {"add", "shfl.sync", "cp.async", "mma", "bra"} <= names[0] < names[1]
    assert "elect.sync" in names[1] - names[0]
    assert {one["since"] for one in old["simulated"]} == {"sm_80"}
    missing = {one["instruction"] for one in old["not_simulated"]}
    assert "tcgen05.mma.sp" in missing
    assert all(one["chapter"].endswith("Instructions") for one in old["simulated"])


def test_text_names_what_stops_a_kernel(capsys):
    text = answer(capsys, "--arch", "sm_89")
    assert "instruction forms are simulated for sm_89" in text
    assert text.rstrip().splitlines()[-1].startswith("sm_100a: ")


def test_markdown_is_a_table(capsys):
    lines = answer(capsys, "--markdown").splitlines()
    assert "| instruction | since | chapter of the PTX ISA | forms |" in lines
    assert sum(line.startswith("| `") for line in lines) > 120
