"""The sources of a prompt's text are those of the session's effects."""

from cutegen_nb.core.device import Device
from cutegen_nb.loop.effects import Effects
from cutegen_nb.loop.gates import AutoApprover
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.testing.clock import FixedClock
from cutegen_nb.testing.examples import relu_facts, simulated_device
from cutegen_nb.testing.scripted import RecordedEvaluator, ScriptedModel


def effects(**given):
    device: Device = simulated_device()
    return Effects(
        author=ScriptedModel([]), evaluator=RecordedEvaluator(relu_facts(), device, {}),
        approver=AutoApprover(), clock=FixedClock(), library=shipped_library(),
        progress=lambda _: None, **given,
    )  # fmt: skip


def test_without_a_guide_or_a_history_a_prompt_has_neither():
    words = effects().words
    assert words.guide(None) == ""
    assert words.target is None


def test_a_guide_that_is_given_is_the_prompts():
    assert effects(guide=lambda _: "chapter").words.guide(None) == "chapter"
