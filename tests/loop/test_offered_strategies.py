"""Strategies of the library that kernels of six classes are offered, and those that they are not, with the reason.

The kernels are the first ones of the offline author, judged on the simulator and sampled at the problem's full
size. A change of a list below is a change of what an author is asked for: look at it as one who knows GPUs.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from cutegen_nb.analysis.estimate.targets import with_figures
from cutegen_nb.authors.offline.author import OfflineAuthor
from cutegen_nb.core.candidate import Candidate
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.problem import Problem, ProblemForm
from cutegen_nb.core.round import Action, Attempt, Decision, Round
from cutegen_nb.core.search.comparison import Comparison, Relation
from cutegen_nb.core.session import Budget, Session
from cutegen_nb.core.stage import Stage
from cutegen_nb.core.strategy import Strategy
from cutegen_nb.evaluator.evaluator import KernelEvaluator
from cutegen_nb.loop.asking import PromptSources, prompt_of_step
from cutegen_nb.loop.menu import obstacles, offered, without_hope
from cutegen_nb.loop.stages import Step
from cutegen_nb.prompting.context import no_guide
from cutegen_nb.prompting.library import shipped_library
from cutegen_nb.prompting.parse import Proposal, parse_reply

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_template")]

LIBRARY = shipped_library()
WORDS = PromptSources(library=LIBRARY, guide=no_guide)
EXPRESSIONS = {
    "element-wise": ("torch.nn.functional.gelu(x)", 4096),
    "softmax": ("torch.softmax(x, -1)", 4096),
    "norm": ("torch.nn.functional.layer_norm(x, x.shape[1:])", 4096),
    "reduction": ("torch.sum(x, -1)", 4096),
    "loss": ("torch.nn.functional.mse_loss(x, torch.zeros_like(x))", 4096),
    "matrix product": ("x @ x", 2048),
}
"""Reference over a square matrix, and its extent, by workload class."""
FIRST = ("softmax",)
"""Classes judged in ``make test``; the others in ``make test-long``."""


@dataclass(frozen=True)
class Offer:
    """Lists of one kernel."""

    structure: str
    """Strategies of STRUCTURE, in the order to try them."""
    profile: str
    """Strategies of PROFILE."""
    tune: str
    """Strategies of TUNE."""
    done: dict[str, str]
    """Strategies that the kernel carries out already, with the figure that shows it."""
    unfit: dict[str, str]
    """Strategies that are impossible or cannot win, with the figure."""
    hopeless: str
    """Strategies that lower no term of weight in the estimate of the time."""


_INNERMOST = {"columns-across-threads": "the reduced dimension is the innermost"}
_NO_WALK = {"tune-grid": "no loop walks the grid"}
_NO_SHARED = {"pad-or-swizzle": "shared memory is not used"}
_FUSED = {"fuse-one-pass": "no intermediate tensor is stored"}
_ROWS = {"split-reduction": "4,096 rows for 132 multiprocessors"}
_IN_REGISTERS = {"row-in-shared-memory": "a row of 16,384 bytes, registers for 131,072"}
_READ_ONCE = dict.fromkeys(
    ("row-in-registers", "row-in-shared-memory", "online-one-pass"), "rows are read once"
)
_UNSTAGED = dict.fromkeys(
    ("tf32x3", "vectorised-tile-loads", "double-buffered-tiles", "l2-raster"),
    "0.0 % of the bytes loaded are staged",
)
_NUMBERS = "tune-values-per-thread tune-unrolling tune-cta-size"
_FEW_TERMS = "uniform-branches tune-values-per-thread tune-unrolling"

OFFERS = {
    # A thread an element: its access is not coalesced yet, and no grid is walked.
    "element-wise": Offer(
        structure="coalesced-access vectorise-128 several-vectors-in-flight",
        profile="coalesced-access vectorise-128 several-vectors-in-flight",
        tune=_NUMBERS,
        done=_FUSED | _NO_SHARED,
        unfit={"more-ctas": "65,536 CTAs for 132 multiprocessors"} | _NO_WALK,
        hopeless=f"grid-stride {_FEW_TERMS}",
    ),
    # A thread a row, read three times.
    "softmax": Offer(
        structure="vectorise-128 online-one-pass one-cta-a-row row-in-registers coalesced-access "
        "several-vectors-in-flight several-rows-a-cta",
        profile="vectorise-128 online-one-pass coalesced-access row-in-registers one-cta-a-row "
        "several-vectors-in-flight several-rows-a-cta more-ctas",
        tune=_NUMBERS,
        done=_FUSED | _NO_SHARED,
        unfit=_INNERMOST | _IN_REGISTERS | _ROWS | _NO_WALK,
        hopeless=_FEW_TERMS,
    ),
    # A thread a row, read twice, with loads in flight.
    "norm": Offer(
        structure="vectorise-128 online-one-pass one-cta-a-row row-in-registers coalesced-access "
        "several-rows-a-cta",
        profile="vectorise-128 online-one-pass coalesced-access row-in-registers one-cta-a-row "
        "several-rows-a-cta more-ctas",
        tune=_NUMBERS,
        done=_FUSED | _NO_SHARED | {"several-vectors-in-flight": "a thread issues 11 loads at a time"},
        unfit=_INNERMOST | _IN_REGISTERS | _ROWS | _NO_WALK,
        hopeless=_FEW_TERMS,
    ),
    # A thread a row, read once: there is nothing to keep or to merge.
    "reduction": Offer(
        structure="vectorise-128 one-cta-a-row coalesced-access several-rows-a-cta",
        profile="vectorise-128 coalesced-access one-cta-a-row several-rows-a-cta more-ctas",
        tune=_NUMBERS,
        done=_READ_ONCE | _NO_SHARED | {"several-vectors-in-flight": "a thread issues 16 loads at a time"},
        unfit=_INNERMOST
        | _ROWS
        | _NO_WALK
        | {"grid-stride": "16 CTAs, of which the device holds 1,056 at once"},
        hopeless=_FEW_TERMS,
    ),
    # One sum, split over CTAs in two launches, whose threads take neighbouring elements.
    "loss": Offer(
        structure="several-vectors-in-flight vectorise-128",
        profile="several-vectors-in-flight vectorise-128",
        tune="tune-cta-size tune-grid tune-values-per-thread tune-unrolling",
        done=_READ_ONCE
        | {
            "coalesced-access": "100.0 % of the sectors touched are needed",
            "fuse-one-pass": "2 launches pass partial sums of 4,224 bytes, and no intermediate tensor",
            "grid-stride": "a loop walks the work with the stride of the grid",
            "one-cta-a-row": "a CTA reduces a row",
            "pad-or-swizzle": "1.00 × the least wavefronts",
            "split-reduction": "CTAs share sums",
        },
        unfit={"more-ctas": "1,056 CTAs for 132 multiprocessors"},
        hopeless="",
    ),
    # A thread an output, from global memory: tiles come first, and what builds on them is not offered yet.
    "matrix product": Offer(
        structure="shared-memory-tiles register-blocking",
        profile="shared-memory-tiles register-blocking",
        tune="tune-values-per-thread tune-tile-shape tune-unrolling tune-cta-size",
        done={"fused-epilogue": "no intermediate tensor is stored"} | _NO_SHARED,
        unfit={
            "more-ctas": "16,384 CTAs for 132 multiprocessors",
            "one-cta-an-output": "no rows are reduced",
            "vectors-along-k": "no rows are reduced",
            "skip-empty-tiles": "the reference masks nothing",
            "split-k": "256 tiles of 128 × 128 for 132 multiprocessors",
            "stream-k": "no product runs on tensor cores",
            "weights-to-registers": "an operand of 2,048 rows",
            "tune-stages": "nothing is loaded ahead of a barrier",
        }
        | _UNSTAGED
        | _NO_WALK,
        hopeless="",
    ),
}
WIDER = Offer(
    structure="vectorise-128 several-vectors-in-flight several-rows-a-cta online-one-pass row-in-registers",
    profile="vectorise-128 several-vectors-in-flight several-rows-a-cta online-one-pass row-in-registers",
    tune=_NUMBERS,
    done=_FUSED
    | {
        "coalesced-access": "100.0 % of the sectors touched are needed",
        "columns-across-threads": "100.0 % of the sectors touched are needed",
        "one-cta-a-row": "a CTA reduces a row",
        "pad-or-swizzle": "1.00 × the least wavefronts",
    },
    unfit={"more-ctas": "4,096 CTAs for 132 multiprocessors"} | _IN_REGISTERS | _ROWS | _NO_WALK,
    hopeless="",
)
"""Softmax after the strategy `cta-per-row`."""


def source_of(name: str) -> str:
    expression, extent = EXPRESSIONS[name]
    return (
        f"import torch\n\nN = {extent}\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        f"        return {expression}\n\n\ndef get_inputs():\n    return [torch.randn(N, N)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )


async def asked(session: Session, step: Step) -> Candidate:
    """Have the offline author carry out a step."""
    prompt = prompt_of_step(session, WORDS, step, "")
    reply = await OfflineAuthor().write(prompt, session, lambda _: None)
    found = parse_reply(reply, step.parent.candidate.source if step.parent else None)
    assert isinstance(found, Proposal)
    parents = (step.parent.candidate.digest,) if step.parent else ()
    return Candidate(source=found.source, author="offline", strategy=step.strategy, parents=parents)


def with_round(session: Session, step: Step, candidate: Candidate, found: Evaluation) -> Session:
    """Session with a round in which the candidate was approved."""
    assert found.passed, found.summary
    prompt = prompt_of_step(session, WORDS, step, "")
    relation = Relation.ESTIMATED_FASTER if session.rounds else Relation.FIRST
    made = Round(
        number=len(session.rounds),
        stage=step.stage,
        strategy=step.strategy,
        attempts=(
            Attempt(purpose=prompt.purpose, prompt=prompt, reply=None, candidate=candidate, evaluation=found),
        ),
        comparison=Comparison(relation=relation, reason="."),
        decisions=(Decision(gate="revision", action=Action.APPROVE, by="policy:auto"),),
        started_at="",
        seconds=0.0,
    )
    return replace(session, rounds=(*session.rounds, made))


@pytest.fixture(scope="module")
def session_of() -> Callable[[str], Session]:
    """Session of a class with the first kernel; that of softmax has a second one, with a CTA a row."""

    async def make(name: str) -> Session:
        evaluator = KernelEvaluator(device="simulator")
        try:
            return await play(name, evaluator)
        finally:
            await evaluator.close()

    async def play(name: str, evaluator: KernelEvaluator) -> Session:
        problem = Problem(name=name, source=source_of(name), form=ProblemForm.KERNELBENCH, path=f"{name}.py")
        session = Session(
            name=name,
            problem=problem,
            facts=await evaluator.facts(problem, lambda _: None),
            device=with_figures(await evaluator.device()),
            author="offline",
            budget=Budget(),
            created_at="",
        )
        step = Step(stage=Stage.CORRECT)
        candidate = await asked(session, step)
        found = await evaluator.evaluate(problem, candidate, lambda _: None)
        session = with_round(session, step, candidate, found)
        if name == "softmax":
            rows = next(item for item in OfflineAuthor().menu(session.facts) if item.name == "cta-per-row")
            step = Step(stage=Stage.STRUCTURE, parent=session.rounds[0], strategy=rows)
            candidate = await asked(session, step)
            found = await evaluator.evaluate(problem, candidate, lambda _: None)
            session = with_round(session, step, candidate, found)
        return session

    return functools.cache(lambda name: asyncio.run(make(name)))


def menu_of(session: Session) -> tuple[Strategy, ...]:
    return LIBRARY.menu(session.facts.workload_class, session.facts.parts)


def offer_of(session: Session, number: int = 0) -> Offer:
    parent, menu = session.rounds[number], menu_of(session)
    alone = replace(session, rounds=session.rounds[: number + 1])
    against = obstacles(alone, menu, parent)
    lists = (
        " ".join(item.name for item in offered(alone, menu, parent, stage))
        for stage in (Stage.STRUCTURE, Stage.PROFILE, Stage.TUNE)
    )
    return Offer(
        *lists,
        done={item.strategy: item.reason for item in against if item.done},
        unfit={item.strategy: item.reason for item in against if not item.done},
        hopeless=" ".join(without_hope(alone, menu, parent)),
    )


CLASSES = [pytest.param(name, marks=() if name in FIRST else pytest.mark.long) for name in EXPRESSIONS]


@pytest.mark.long
@pytest.mark.parametrize("name", CLASSES)
def test_a_first_kernel_is_offered_what_is_new_possible_and_able_to_win(session_of, name):
    assert session_of(name).facts.workload_class.value == name
    assert offer_of(session_of(name)) == OFFERS[name]


def test_what_a_kernel_carries_out_by_now_is_offered_no_more(session_of):
    assert offer_of(session_of("softmax"), 1) == WIDER


@pytest.mark.parametrize("name", CLASSES)
def test_each_strategy_of_the_menu_is_offered_somewhere_or_its_absence_has_a_reason(session_of, name):
    offer = offer_of(session_of(name))
    told = {*offer.structure.split(), *offer.profile.split(), *offer.tune.split()}
    told |= {*offer.done, *offer.unfit, *offer.hopeless.split()}
    menu = {item.name: item for item in menu_of(session_of(name))}
    assert told <= set(menu)
    for item in (menu[other] for other in set(menu) - told):
        # An answer to a counter that does not ask for it, or a strategy for another architecture or dtype.
        if item.stage is not Stage.PROFILE and not item.architectures:
            assert item.dtypes, item.name
            assert "float32" not in item.dtypes, item.name
