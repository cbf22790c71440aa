"""The judge of the outside judgement: a process into which no candidate ever comes.

It draws the inputs, gives them away as bytes, and keeps their values and the way to the right answer to
itself: what the candidate's process can do to them, or say of itself, changes nothing here.  When that
process is dead, it compares the bytes that were left with the same gates as inside.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from cutegen_nb.core.codec import decode, encode
from cutegen_nb.core.errors import EvaluatorError, UsageError
from cutegen_nb.core.evaluation import (
    Correctness,
    Evaluation,
    Exhibit,
    Finding,
    Judged,
    OutputComparison,
    Verdict,
)
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.gpu import comparing, correctness, inputs, problem_source, sandbox, tensor_files
from cutegen_nb.gpu.candidate_module import plain_state
from cutegen_nb.gpu.channel import Channel
from cutegen_nb.gpu.checks.probing import expect
from cutegen_nb.gpu.checks.variants import VARIANTS, Variant, varied
from cutegen_nb.gpu.comparing import cloned, excerpts, tensors_of
from cutegen_nb.gpu.correctness import Gate
from cutegen_nb.gpu.ground import Ground
from cutegen_nb.gpu.problem_source import LoadedProblem
from cutegen_nb.gpu.runs import Answers
from cutegen_nb.gpu.second_look import second_look

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """Inputs of one call."""

    seed: int
    """They were drawn under it."""
    drawn: list[Any]
    """Their values, in this process's own memory on the host."""
    variant: Variant | None = None
    """What was done to them; None for the problem's own."""

    @property
    def words(self) -> str:
        """In words, for messages."""
        return f"inputs {self.variant.name}" if self.variant else "inputs of a fresh seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """What decides against the outputs of one call."""

    verdict: Verdict
    kind: str
    message: str
    outputs: tuple[OutputComparison, ...] = ()
    excerpts: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = ((), (), ())
    """Of inputs, outputs and what was expected."""


@dataclass(slots=True, kw_only=True)
class _Judge:
    """One outside judgement."""

    loaded: LoadedProblem
    ground: Ground
    folder: Path
    model_seed: int
    """The parameters' seed, which the candidate's process gets too."""
    longest_sum: float
    gates: tuple[Gate, ...]
    sets: list[_Set] = field(default_factory=list)
    unused: str = ""
    """Sets that were not compared, with the reason."""

    def draw(self, seeds: Sequence[int], added: Sequence[str]) -> None:
        """Draw a set for each seed; the second one's values are changed, by any variant that serves.

        Those `added` come first: by them wrong answers are told from right ones.
        """
        self.sets.append(_Set(seed=seeds[0], drawn=self._drawn(seeds[0])))
        for seed in seeds[1:2]:
            changed = self._changed(seed, added)
            self.sets += [] if changed is None else [changed]
        self.sets += [_Set(seed=seed, drawn=self._drawn(seed)) for seed in seeds[2:]]

    def _drawn(self, seed: int) -> list[Any]:
        return _to(cloned(inputs.draw(self.loaded, seed, self.ground.device)), "cpu")

    def _changed(self, seed: int, added: Sequence[str]) -> _Set | None:
        own = inputs.draw(self.loaded, seed, self.ground.device)
        deciding = [variant for variant in VARIANTS if variant.decides and not variant.shrinks]
        shuffled = random.SystemRandom().sample(deciding, len(deciding))
        for variant in sorted(shuffled, key=lambda one: one.name not in added):
            drawn = varied(own, variant.change)
            reference = self.loaded.reference(self.model_seed, self.ground.device)
            if drawn is not None and not isinstance(self._expect(reference, drawn, variant), str):
                return _Set(seed=seed, drawn=_to(drawn, "cpu"), variant=variant)
        return None

    def _expect(self, reference: torch.nn.Module, drawn: list[Any], variant: Variant) -> Any:
        terms = correctness.if_terms_repeat(self.longest_sum) if variant.repeats else self.longest_sum
        units = correctness.units_lost(self.longest_sum) if variant.alike else 1.0
        return expect(reference, drawn, terms, units=units)

    def given(self) -> dict[str, Any]:
        """Write what the candidate's process gets. Raises UsageError where some of it does not travel."""
        state = self._state(self.loaded.reference(self.model_seed, self.ground.device).state_dict(), "state")
        plain = {}
        if state:
            device = torch.device(self.ground.device)
            plain = self._state(plain_state(self.loaded, self.model_seed, device), "plain")
        return {
            "init": [
                tensor_files.pack_nested(item, self.folder, f"init-{i}")
                for i, item in enumerate(self.loaded.init_inputs())
            ],
            "state": state,
            "plain": plain,
            "sets": [
                [
                    tensor_files.pack(item, self.folder, f"argument-{number}-{i}")
                    for i, item in enumerate(one.drawn)
                ]
                for number, one in enumerate(self.sets)
            ],
        }

    def _state(self, tensors: Mapping[str, torch.Tensor], name: str) -> dict[str, tensor_files.Packed]:
        return {
            key: tensor_files.pack(tensor, self.folder, f"{name}-{i}")
            for i, (key, tensor) in enumerate(tensors.items())
        }

    def compare(self, left: Sequence[Any], *, complete: bool) -> Evaluation:
        """What was left, against the answer. `complete` says whether it took the redrawn parameters.

        That much its own process may decide: both kinds are faithful initialisations.
        """
        reference = self.loaded.reference(self.model_seed, self.ground.device)
        if not complete and reference.state_dict():
            device = torch.device(self.ground.device)
            reference.load_state_dict(plain_state(self.loaded, self.model_seed, device))
        outputs: tuple[OutputComparison, ...] = ()
        for number, one in enumerate(self.sets):
            announced = left[number] if number < len(left) else []
            found = self._compared(reference, one, number, announced)
            if isinstance(found, _Wrong):
                return self._wrong(found, one, number)
            outputs = found or outputs
        calls = f"{len(self.sets)} call{'s' if len(self.sets) > 1 else ''}"
        return Evaluation(
            outcome=Judged(verdict=Verdict.PASSED),
            summary=f"{calls}: {'; '.join(one.words for one in self.sets)}{self.unused}",
            device=self.ground.name,
            correctness=self._correctness(outputs),
        )

    def _compared(
        self,
        reference: torch.nn.Module,
        one: _Set,
        number: int,
        announced: Any,
    ) -> tuple[OutputComparison, ...] | _Wrong:
        drawn = _to(one.drawn, self.ground.device)
        if one.variant is None:
            answers = _answers(reference, drawn)
            self.gates = self.gates or tuple(
                correctness.find_gate(want, true, self.longest_sum)
                for want, true in zip(answers.wanted, answers.truth, strict=True)
            )
            gates = self.gates
        else:
            expected = self._expect(reference, drawn, one.variant)
            if isinstance(expected, str):
                self.unused += f"; {one.words} not compared: {expected}"
                return ()
            answers, gates = expected.answers, expected.gates
        found = self._read(answers.wanted, number, announced)
        if isinstance(found, _Wrong):
            return found
        outputs = comparing.compared(found, answers.wanted, answers.truth, gates, drawn)
        if not all(item.matches for item in outputs):
            outputs = second_look(
                reference=reference,
                drawn=drawn,
                leaves=found,
                wanted=answers.wanted,
                truth=answers.truth,
                gates=gates,
                outputs=outputs,
            ).outputs
        wrong = next((item for item in outputs if not item.matches), None)
        if wrong is None:
            return outputs
        return _Wrong(
            verdict=Verdict.WRONG_VALUES,
            kind="wrong-outside",
            message=correctness.sentence(wrong),
            outputs=outputs,
            excerpts=(
                excerpts(drawn, "input"),
                excerpts(found, "output"),
                excerpts(answers.wanted, "output"),
            ),
        )

    def _read(self, wanted: Tensors, number: int, announced: Any) -> Tensors | _Wrong:
        """The outputs from their files, of the reference's own types and shapes; or how they differ."""
        forms = [tensor_files.form(item) for item in wanted]
        said = announced if isinstance(announced, list) else []
        if len(said) != len(forms):
            message = f"forward returned {len(said)} outputs, the reference {len(forms)}."
            return _Wrong(verdict=Verdict.WRONG_SHAPE, kind="wrong-number", message=message)
        for index, (have, want) in enumerate(zip(said, forms, strict=True)):
            if have != want:
                message = f"Output {index} is {str(have)[:120]}; the reference gives {want}."
                verdict = Verdict.WRONG_DTYPE if _same_shape(have, want) else Verdict.WRONG_SHAPE
                return _Wrong(verdict=verdict, kind="wrong-form", message=message)
        try:
            return tuple(
                tensor_files.read_tensor(
                    self.folder / f"output-{number}-{index}", form["dtype"], form["shape"]
                ).to(self.ground.device)
                for index, form in enumerate(forms)
            )
        except (OSError, EvaluatorError) as error:
            message = f"The outputs are not the files that were announced: {error}."
            return _Wrong(verdict=Verdict.WRONG_SHAPE, kind="wrong-file", message=message)

    def _wrong(self, found: _Wrong, one: _Set, number: int) -> Evaluation:
        message = f"In call {number + 1}, with {one.words}: {found.message}"
        finding = Finding(kind=found.kind, message=message)
        given, got, expected = found.excerpts
        exhibit = Exhibit(kind=found.kind, statement=message, inputs=given, outputs=got, expected=expected)
        return Evaluation(
            outcome=Judged(verdict=found.verdict),
            summary=message,
            device=self.ground.name,
            findings=(finding,),
            exhibits=(exhibit,),
            correctness=self._correctness(found.outputs) if found.outputs else None,
        )

    def _correctness(self, outputs: tuple[OutputComparison, ...]) -> Correctness:
        return Correctness(seeds=tuple(one.seed for one in self.sets), outputs=outputs, checks=())


def answer(request: Mapping[str, Any], channel: Channel, ground: Ground) -> None:
    """In the worker: draw, wait until the candidate's process has ended, compare."""
    if ground.simulation is None:
        torch.backends.cudnn.allow_tf32 = False
    channel.send("stage", text="drawing inputs outside the candidate's process")
    model_seed, *seeds = (int(seed) for seed in request["seeds"])
    with torch.no_grad():
        judge = _Judge(
            loaded=problem_source.load(
                decode(Problem, request["problem"]), decode(tuple[Rewrite, ...], request["rewrites"])
            ),
            ground=ground,
            folder=Path.cwd() / str(request["folder"]),
            model_seed=model_seed,
            longest_sum=float(request["longest_sum"]),
            gates=decode(tuple[Gate, ...], request["gates"]),
        )
        try:
            judge.draw(seeds, [str(name) for name in request["added_inputs"]])
            given = judge.given()
        except UsageError as error:
            channel.send("impossible", problem=True, reason=f"what it needs does not travel as data: {error}")
            return
        except OSError as error:
            channel.send("impossible", reason=f"the inputs could not be written to a file: {error}")
            return
        _release(ground)
        names = sorted(item.name for item in judge.folder.iterdir() if item.is_file())
        with sandbox.closed_memory():
            channel.send("drawn", given=given, files=names)
            reply = channel.receive()
        if reply is None or reply.get("sets") is None:
            os._exit(0)
        channel.send("stage", text="comparing outside the candidate's process")
        sets = reply["sets"] if isinstance(reply["sets"], list) else []
        found = judge.compare(sets, complete=reply.get("complete") is True)
    channel.send("compared", evaluation=encode(found))


def _answers(reference: torch.nn.Module, drawn: list[Any]) -> Answers:
    after = cloned(drawn)
    wanted = tensors_of(reference(*after))
    truth, _ = comparing.oracle(reference, drawn, wanted)
    return Answers(wanted=wanted, truth=truth, inputs_after=after)


def _release(ground: Ground) -> None:
    """The candidate's process needs the GPU's memory more than this one's cache does."""
    if ground.simulation is None:
        torch.cuda.empty_cache()


def _to(items: Sequence[Any], device: str) -> list[Any]:
    return [item.to(device) if isinstance(item, torch.Tensor) else item for item in items]


def _same_shape(have: Any, want: tensor_files.Packed) -> bool:
    return isinstance(have, dict) and have.get("shape") == want["shape"]
