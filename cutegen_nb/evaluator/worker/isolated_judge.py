"""Judge of the isolated judgement: a process that no candidate ever enters.

The judge draws the inputs and gives them away as bytes. It keeps their values and the reference to itself, so
nothing that the candidate's process does or reports can change them. When that process is dead, the judge
compares the bytes left by it, with the same tolerance gates as in an ordinary evaluation.
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
from cutegen_nb.core.evaluation import Correctness, Evaluation, Judged, OutputComparison, Verdict
from cutegen_nb.core.finding import Exhibit, Finding
from cutegen_nb.core.problem import Problem, Rewrite
from cutegen_nb.core.tolerance import Tolerance
from cutegen_nb.evaluator.numerics import tolerance
from cutegen_nb.evaluator.numerics.poison import poison
from cutegen_nb.evaluator.observe.backend import ExecutionDevice
from cutegen_nb.evaluator.probes.probe import expected_for
from cutegen_nb.evaluator.problem import inputs, loader
from cutegen_nb.evaluator.problem.input_variants import VARIANTS, InputVariant, varied
from cutegen_nb.evaluator.problem.loader import LoadedProblem
from cutegen_nb.evaluator.process import process_tree
from cutegen_nb.evaluator.process.channel import Channel
from cutegen_nb.evaluator.trial import compare as comparing
from cutegen_nb.evaluator.trial.candidate import plain_state
from cutegen_nb.evaluator.trial.compare import cloned, excerpts, tensors_of
from cutegen_nb.evaluator.trial.conditioning import compare_outputs
from cutegen_nb.evaluator.trial.observations import ReferenceOutputs
from cutegen_nb.evaluator.worker import shared_tensors, tensor_files

Tensors = tuple[torch.Tensor, ...]

_SHARED_PARAMETER_BYTES = 1 << 20
"""Bytes of a parameter from which on it travels like the inputs, in GPU memory where that is shared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Set:
    """Inputs of one call."""

    seed: int
    """Seed of the inputs."""
    drawn: list[Any]
    """Values in this process's own memory: on the host, or on the GPU where tensors are shared."""
    outputs: list[torch.Tensor] = field(default_factory=list)
    """Buffers in this process's memory for the outputs of the candidate's process; empty for files."""
    variant: InputVariant | None = None
    """Change made to the inputs; None for the problem's own."""

    @property
    def words(self) -> str:
        """Description of the inputs for messages."""
        return f"inputs {self.variant.name}" if self.variant else "inputs of a fresh seed"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wrong:
    """Deciding fault in the outputs of one call."""

    verdict: Verdict
    kind: str
    message: str
    outputs: tuple[OutputComparison, ...] = ()
    excerpts: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] = ((), (), ())
    """Excerpts of inputs, outputs and expected outputs."""


@dataclass(slots=True, kw_only=True)
class _Judge:
    """One isolated judgement."""

    loaded: LoadedProblem
    ground: ExecutionDevice
    folder: Path
    model_seed: int
    """Seed of the parameters, which the candidate's process gets too."""
    longest_sum: float
    gates: tuple[Tolerance, ...]
    shared: bool = False
    """True if tensors travel in GPU memory that both processes see, False for files."""
    sets: list[_Set] = field(default_factory=list)
    unused: str = ""
    """Sets that were not compared, each with the reason."""

    def draw(self, seeds: Sequence[int], added: Sequence[str]) -> None:
        """Draw a set of inputs for each seed; a usable variant changes the values of the second set.

        Variants named in `added` are tried first: they tell wrong answers from right ones. The second set is
        left out where no variant is usable.
        """
        self.sets.append(_Set(seed=seeds[0], drawn=self._drawn(seeds[0])))
        for seed in seeds[1:2]:
            changed = self._changed(seed, added)
            self.sets += [] if changed is None else [changed]
        self.sets += [_Set(seed=seed, drawn=self._drawn(seed)) for seed in seeds[2:]]

    def _drawn(self, seed: int) -> list[Any]:
        return self._kept(cloned(inputs.draw(self.loaded, seed, self.ground.device)))

    def _kept(self, drawn: list[Any]) -> list[Any]:
        return drawn if self.shared else _to(drawn, "cpu")

    def _changed(self, seed: int, added: Sequence[str]) -> _Set | None:
        own = inputs.draw(self.loaded, seed, self.ground.device)
        deciding = [variant for variant in VARIANTS if variant.decides and not variant.shrinks]
        # An order that the candidate cannot predict; the stable sort moves the added variants to the front.
        shuffled = random.SystemRandom().sample(deciding, len(deciding))
        for variant in sorted(shuffled, key=lambda one: one.name not in added):
            drawn = varied(own, variant.change)
            reference = self.loaded.reference(self.model_seed, self.ground.device)
            if drawn is not None and not isinstance(self._expect(reference, drawn), str):
                return _Set(seed=seed, drawn=self._kept(drawn), variant=variant)
        return None

    def _expect(self, reference: torch.nn.Module, drawn: list[Any]) -> Any:
        return expected_for(reference, drawn, self.longest_sum)

    def given(self) -> dict[str, Any]:
        """Write the data for the candidate's process; return the record that describes it.

        Raises UsageError for a value that cannot be sent, CannotShare and OSError.
        """
        values = self.loaded.reference(self.model_seed, self.ground.device).state_dict()
        state = {name: self._parameter(item, f"state-{i}") for i, (name, item) in enumerate(values.items())}
        plain = {}
        if state:
            initial = plain_state(self.loaded, self.model_seed, torch.device(self.ground.device))
            plain = {
                name: state[name] if torch.equal(item, values[name]) else self._parameter(item, f"plain-{i}")
                for i, (name, item) in enumerate(initial.items())
            }
        return {
            "init": [
                tensor_files.pack_nested(item, self.folder, f"init-{i}")
                for i, item in enumerate(self.loaded.init_inputs())
            ],
            "state": state,
            "plain": plain,
            "sets": [
                [self._given(item, f"argument-{number}-{i}") for i, item in enumerate(one.drawn)]
                for number, one in enumerate(self.sets)
            ],
            "outputs": [self._rooms(one) for one in self.sets] if self.shared else [],
        }

    def _given(self, item: Any, name: str) -> tensor_files.Packed:
        if not self.shared or not isinstance(item, torch.Tensor):
            return tensor_files.pack(item, self.folder, name)
        packed, room = shared_tensors.share(tensor_files.form(item))
        room.copy_(item)
        return packed | {"stride": list(torch.empty_like(item, device="meta").stride())}

    def _rooms(self, one: _Set) -> list[tensor_files.Packed]:
        """Allocate poisoned buffers for the outputs of one call: an element that is not written is wrong."""
        reference = self.loaded.reference(self.model_seed, self.ground.device)
        forms = [tensor_files.form(item) for item in tensors_of(reference(*cloned(one.drawn)))]
        found = []
        for form in forms:
            packed, room = shared_tensors.share(form)
            poison(room)
            one.outputs.append(room)
            found.append(packed)
        return found

    def _parameter(self, item: torch.Tensor, name: str) -> tensor_files.Packed:
        """Share a parameter or buffer, or write its file: allocating takes longer than a small file."""
        if item.numel() * item.element_size() < _SHARED_PARAMETER_BYTES:
            return tensor_files.pack(item, self.folder, name)
        return self._given(item, name)

    def compare(self, left: Sequence[Any]) -> Evaluation:
        """Compare the outputs announced in `left` with the right answers."""
        reference = self.loaded.reference(self.model_seed, self.ground.device)
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
            # Without gates from the admission, those found here serve for all later unchanged sets too.
            self.gates = self.gates or tolerance.find_tolerances(
                answers.wanted, answers.truth, self.longest_sum
            )
            gates = self.gates
        else:
            expected = self._expect(reference, drawn)
            if isinstance(expected, str):
                self.unused += f"; {one.words} not compared: {expected}"
                return ()
            answers, gates = expected.answers, expected.gates
        found = self._read(answers.wanted, number, announced)
        if isinstance(found, _Wrong):
            return found
        outputs = compare_outputs(
            reference=reference,
            drawn=drawn,
            leaves=found,
            wanted=answers.wanted,
            truth=answers.truth,
            gates=gates,
            longest_sum=self.longest_sum,
        ).outputs
        wrong = next((item for item in outputs if not item.matches), None)
        if wrong is None:
            return outputs
        return _Wrong(
            verdict=Verdict.WRONG_VALUES,
            kind="wrong-outside",
            message=tolerance.sentence(wrong),
            outputs=outputs,
            excerpts=(
                excerpts(drawn, "input"),
                excerpts(found, "output"),
                excerpts(answers.wanted, "output"),
            ),
        )

    def _read(self, wanted: Tensors, number: int, announced: Any) -> Tensors | _Wrong:
        """Read the outputs, which must have the reference's dtypes and shapes; otherwise return the fault."""
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
        if self.shared:
            return tuple(self.sets[number].outputs)
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


def answer(request: Mapping[str, Any], channel: Channel, ground: ExecutionDevice) -> None:
    """Serve the request in the worker: draw, wait until the candidate's process has ended, compare."""
    channel.send("stage", text="drawing inputs outside the candidate's process")
    model_seed, *seeds = (int(seed) for seed in request["seeds"])
    with torch.no_grad():
        judge = _Judge(
            loaded=loader.load(
                decode(Problem, request["problem"]), decode(tuple[Rewrite, ...], request["rewrites"])
            ),
            ground=ground,
            folder=Path.cwd() / str(request["folder"]),
            model_seed=model_seed,
            longest_sum=float(request["longest_sum"]),
            gates=decode(tuple[Tolerance, ...], request["gates"]),
            shared=bool(request["shared"]),
        )
        try:
            judge.draw(seeds, [str(name) for name in request["added_inputs"]])
            given = judge.given()
        except shared_tensors.CannotShare:
            channel.send("unshared")
            return
        except UsageError as error:
            channel.send("impossible", problem=True, reason=f"what it needs does not travel as data: {error}")
            return
        except OSError as error:
            channel.send("impossible", reason=f"the inputs could not be written to a file: {error}")
            return
        _release(ground)
        names = sorted(item.name for item in judge.folder.iterdir() if item.is_file())
        with process_tree.not_dumpable():
            channel.send("drawn", given=given, files=names)
            reply = channel.receive()
        if reply is None or reply.get("sets") is None:
            os._exit(0)
        channel.send("stage", text="comparing outside the candidate's process")
        sets = reply["sets"] if isinstance(reply["sets"], list) else []
        found = judge.compare(sets)
    channel.send("compared", evaluation=encode(found))


def _answers(reference: torch.nn.Module, drawn: list[Any]) -> ReferenceOutputs:
    wanted, writes = comparing.answered(reference, drawn)
    truth, _ = comparing.oracle(reference, drawn, wanted)
    return ReferenceOutputs(wanted=wanted, truth=truth, writes=writes)


def _release(ground: ExecutionDevice) -> None:
    """Return PyTorch's cached GPU memory to the driver: the candidate's process needs it."""
    if ground.simulation is None:
        torch.cuda.empty_cache()


def _to(items: Sequence[Any], device: str) -> list[Any]:
    return [item.to(device) if isinstance(item, torch.Tensor) else item for item in items]


def _same_shape(have: Any, want: tensor_files.Packed) -> bool:
    return isinstance(have, dict) and have.get("shape") == want["shape"]
