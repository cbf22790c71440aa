"""Mutated PTX either parses or is refused by one clean error with its line; what parses lowers or stops cleanly.

A seeded sample runs in ``make test``, 10,000 inputs in ``make test-long``.
"""

import os
import random
import re

import pytest

from cutegen_nb.simulator.isa.instruction_set import PRELUDE, instruction_set
from cutegen_nb.simulator.machine.program import program_of
from cutegen_nb.simulator.ptx.faults import SimulatorFault
from cutegen_nb.simulator.ptx.parser import parse
from cutegen_nb.simulator.ptx.tokens import PtxSyntaxError

INPUTS = 10_000 if os.environ.get("CUTEGEN_LONG") else 1500
PARTS = 5
LARGEST = 4_000
"""Characters of a real text that are mutated: as many texts as possible in little time."""
TOKEN = re.compile(r"[%$.\w]+|[^\s\w]")
NUMBERS = (
    "0",
    "-1",
    "99999999999999999999999999",
    "0x",
    "0xFFFFFFFFFFFFFFFFFFFF",
    "0f3F80",
    "1e999",
    "0f7FC00000",
    "1" * 5000,
)
LETTERS = "{}[]()<>,;:@!%.$\"'|=+-0xfU\n\\é\0 "


def texts(machine):
    """Real kernels cut between functions' lines, and one kernel with every instruction there is."""
    found = []
    for path in sorted(machine.data.glob("*.ptx")):
        text = path.read_text()
        lines = text.splitlines()
        while len("\n".join(lines)) > LARGEST:
            del lines[len(lines) // 2]
        found.append("\n".join(lines))
    examples = [form.example for form in instruction_set() if form.example and "NEXT" not in form.example]
    found.extend(
        PRELUDE.format(example="\n".join(examples[at : at + 30])) for at in range(0, len(examples), 30)
    )
    return found


def mutated(text, chance):
    """One to three slips of the kinds that editors, disks and careless people make."""
    for _ in range(chance.randint(1, 3)):
        text = chance.choice(SLIPS)(text, chance) or "."
    return text


def flip(text, chance):
    at = chance.randrange(len(text))
    return text[:at] + chr(ord(text[at]) ^ 1 << chance.randrange(7)) + text[at + 1 :]


def strew(text, chance):
    at = chance.randrange(len(text))
    return text[:at] + chance.choice(LETTERS) + text[at + chance.randint(0, 4) :]


def delete(text, chance):
    at = chance.randrange(len(text))
    return text[:at] + text[at + chance.randint(1, 80) :]


def double(text, chance):
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    return "\n".join([*lines[: at + 1], *([lines[at]] * chance.randint(1, 3)), *lines[at + 1 :]])


def shuffle_lines(text, chance):
    lines = text.split("\n")
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "\n".join(lines)


def swap_tokens(text, chance):
    found = list(TOKEN.finditer(text))
    if len(found) < 2:
        return text
    one, two = sorted(chance.sample(found, 2), key=lambda match: match.start())
    return text[: one.start()] + two.group() + text[one.end() : two.start()] + one.group() + text[two.end() :]


def truncate(text, chance):
    return text[: chance.randrange(len(text))] if chance.random() < 0.3 else text


def exaggerate(text, chance):
    numbers = list(re.finditer(r"\b\d+\b", text))
    if not numbers:
        return text
    match = chance.choice(numbers)
    return text[: match.start()] + chance.choice(NUMBERS) + text[match.end() :]


SLIPS = (flip, strew, delete, double, shuffle_lines, swap_tokens, truncate, exaggerate)


@pytest.mark.first(1)
@pytest.mark.sampled
@pytest.mark.parametrize("part", range(PARTS))
def test_every_mutated_text_is_read_or_refused_by_a_sentence(machine, part):
    sources = texts(machine)
    read = refused = 0
    for number in range(part, INPUTS, PARTS):
        module, complaint = attempt(mutated(sources[number % len(sources)], random.Random(number)))
        if module is None:
            assert re.match(r"PTX line \d+: ", complaint), (number, complaint)
            assert len(complaint) < 500, number
            refused += 1
            continue
        read += 1
        for kernel in module.kernels.values():
            refusal = refusal_to_lower(module, kernel)
            assert not refusal or "PTX line" in refusal, (number, refusal)
    assert min(read, refused) > INPUTS / PARTS / 20


def attempt(text):
    """The module, or what the parser says; any other exception is a failure of the test."""
    try:
        return parse.__wrapped__(text), ""
    except PtxSyntaxError as complaint:
        return None, str(complaint)


def refusal_to_lower(module, kernel):
    """Reason for which a kernel cannot be made ready; empty where it can, however it may stop when it is run."""
    try:
        return "" if program_of(module, kernel).segments else "no segments"
    except SimulatorFault as fault:
        return str(fault)
