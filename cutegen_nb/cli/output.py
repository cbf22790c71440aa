"""What the commands print: JSON objects, and the few tables the report does not make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cutegen_nb.analysis.lineage_graph import lineage
from cutegen_nb.analysis.occupancy import launch_occupancy
from cutegen_nb.analysis.prediction import round_scores
from cutegen_nb.analysis.roofline import place
from cutegen_nb.analysis.spent import notes_of
from cutegen_nb.analysis.summary import decision
from cutegen_nb.core.codec import encode
from cutegen_nb.core.device import Device
from cutegen_nb.core.evaluation import BaselineTiming, Evaluation
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import Admission, ProblemFacts, Workload
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.core.round import Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.simulation import ProgramRun
from cutegen_nb.prompting.facts import tensor_text
from cutegen_nb.prompting.memory import round_label
from cutegen_nb.report.fitting import table_lines


def session_json(session: Session, report: str | None) -> dict[str, Any]:
    """The object that ``run`` and ``demo`` print."""
    best = session.best
    roof = place(session.facts, session.device)
    return {
        "session": session.name,
        "problem": {
            **problem_json(session.problem.name, session.facts),
            "floor_ms": roof.floor_ms,
            "bound": roof.bound.value,
        },
        "device": device_json(session.device),
        "author": session.author,
        "rounds": [round_json(session, item) for item in session.rounds],
        "best": round_json(session, best) if best else None,
        "report": report,
        "stopped": session.stopped,
    }


def problem_json(name: str, facts: ProblemFacts) -> dict[str, Any]:
    """What is known of the problem, at both sizes."""
    return {
        "name": name,
        "class": facts.workload_class.value,
        "dtype": facts.dtype,
        "flops": facts.full.flops,
        "least_bytes": facts.full.least_bytes,
        "full": _workload_json(facts.full),
        "scaled": _workload_json(facts.scaled),
        "warnings": list(facts.warnings),
        "admission": _plain(facts.admission) if facts.admission else None,
    }


def _workload_json(workload: Workload) -> dict[str, Any]:
    return {
        **_tensors(workload.graph),
        "flops": workload.flops,
        "least_bytes": workload.least_bytes,
        "rewrites": [
            {"line": item.line, "full": item.full, "scaled": item.scaled} for item in workload.rewrites
        ],
    }


def _tensors(graph: Graph) -> dict[str, list[str]]:
    return {
        "inputs": [tensor_text(value.spec) for value in graph.inputs],
        "outputs": [tensor_text(spec) for spec in graph.output_specs],
    }


def device_json(device: Device) -> dict[str, str]:
    """What candidates ran on."""
    return {"kind": device.kind.value, "name": device.name, "architecture": device.architecture}


def round_json(session: Session, item: Round) -> dict[str, Any]:
    """One round: what was tried, what became of it, and who decided."""
    evaluation, candidate = item.evaluation, item.candidate
    roof = place(session.facts, session.device, evaluation)
    made = decision(item)
    return {
        "number": item.number,
        "revision": f"r{item.number}",
        "stage": item.stage.value,
        "stage_because": item.stage_because or None,
        "claims": list(round_scores(session, item)),
        "strategy": item.strategy.name if item.strategy else None,
        "verdict": round_label(item),
        "relation": item.comparison.relation.value if item.comparison else None,
        "reason": item.comparison.reason if item.comparison else _why(item),
        "approved": item.approved,
        "tier": evaluation.tier.value if evaluation else None,
        "exhibits": [_plain(one) for one in evaluation.exhibits] if evaluation else [],
        "decided_by": made.by if made else None,
        "attempts": len(item.attempts),
        "candidate": candidate.digest if candidate else None,
        "counters": _counters_json(evaluation),
        "moved_over_least": roof.moved_over_least,
        "timing": _timing_json(evaluation),
        "sol_fraction": roof.sol_fraction,
        "seconds": item.seconds,
        "usage": _plain(item.usage),
        "notes": list(notes_of(item.attempts)),
    }


def _why(item: Round) -> str:
    return item.evaluation.summary if item.evaluation else item.note


def _counters_json(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None or evaluation.profile is None:
        return None
    counters = evaluation.profile.counters
    return {
        "gmem_sectors": counters.gmem_sectors,
        **_plain(counters),
        "launches": len(evaluation.profile.launches),
        "source": evaluation.profile.source.value,
    }


def _launches_json(evaluation: Evaluation) -> list[dict[str, Any]] | None:
    """Every launch with what the compiler gave its kernel, its occupancy, and its counts by line."""
    if evaluation.profile is None:
        return None
    return [
        {
            **{name: value for name, value in _plain(launch).items() if name != "lines"},
            "occupancy": _occupancy_json(launch),
            "lines": [
                {"file": line.file, "line": line.line, **_counted(_plain(line.counters))}
                for line in launch.lines
            ],
        }
        for launch in evaluation.profile.launches
    ]


def _occupancy_json(launch: LaunchProfile) -> dict[str, Any] | None:
    found = launch_occupancy(launch)
    if found is None:
        return None
    return {**_plain(found), "fraction": found.fraction, "limiters": list(found.limiters)}


def _counted(figures: dict[str, Any]) -> dict[str, Any]:
    """The figures that are not nought: most lines have few."""
    return {name: value for name, value in figures.items() if value}


def _timing_json(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None or evaluation.timing is None:
        return None
    timing = evaluation.timing
    return {
        "median_ms": timing.median_ms,
        "method": timing.method,
        "host_ms": timing.host_ms,
        "host_included": timing.host_included,
        "baselines": [_pair_json(item) for item in timing.baselines],
        "best_before": _pair_json(timing.rival) if timing.rival else None,
    }


def _pair_json(item: BaselineTiming) -> dict[str, Any]:
    return {
        "name": item.name,
        "median_ms": item.median_ms,
        "speedup": item.speedup,
        "speedup_low": item.speedup_low,
        "speedup_high": item.speedup_high,
    }


def evaluation_json(evaluation: Evaluation, admission: Admission | None = None) -> dict[str, Any]:
    """The object that ``evaluate`` prints."""
    return {
        "verdict": evaluation.label,
        "tier": evaluation.tier.value,
        "candidate_sha256": evaluation.candidate_digest,
        "problem_sha256": evaluation.problem_digest,
        "passed": evaluation.passed,
        "summary": evaluation.summary,
        "device": evaluation.device,
        "findings": [_plain(item) for item in evaluation.findings],
        "exhibits": [_plain(item) for item in evaluation.exhibits],
        "checks": [_plain(item) for item in evaluation.checks],
        "admission": _plain(admission) if admission else None,
        "correctness": _plain(evaluation.correctness) if evaluation.correctness else None,
        "counters": _counters_json(evaluation),
        "launches": _launches_json(evaluation),
        "timing": _timing_json(evaluation),
        "log": evaluation.log,
        "seconds": evaluation.duration_s,
    }


def simulation_json(run: ProgramRun) -> dict[str, Any]:
    """The object that ``simulate`` writes. Every figure in it is a simulated count."""
    return {
        "script": run.script,
        "arguments": list(run.arguments),
        "architecture": run.architecture,
        "source": run.profile.source.value,
        "ending": run.ending.value,
        "exit_status": run.exit_status,
        "sentence": run.sentence,
        "not_simulated": run.not_simulated,
        "layouts": [_plain(item) for item in run.layouts],
        "launch_count": run.launch_count,
        "sampled": run.sampled,
        "launches": [
            {"times": item.times, **_plain(item.profile), "occupancy": _occupancy_json(item.profile)}
            for item in run.launches
        ],
        "findings": [_plain(item) for item in run.findings],
    }


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value as JSON without the names of its types."""
    return _untagged(encode(value))


def _untagged(data: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(data, dict):
        return {key: _untagged(item) for key, item in data.items() if key != "_"}
    if isinstance(data, list):
        return [_untagged(item) for item in data]
    return data


def sessions_json(sessions: Sequence[Session]) -> list[dict[str, Any]]:
    """The list that ``sessions`` prints."""
    return [
        {
            "session": item.name,
            "problem": item.problem.name,
            "class": item.facts.workload_class.value,
            "device": item.device.name,
            "author": item.author,
            "rounds": len(item.rounds),
            "best": f"r{item.best.number}" if item.best else None,
            "created_at": item.created_at,
            "stopped": item.stopped,
        }
        for item in sessions
    ]


def lineage_json(session: Session) -> dict[str, Any]:
    """The object that ``sessions SESSION`` prints."""
    graph = lineage(session)
    return {
        "session": session.name,
        "revisions": [_plain(one) for one in graph.revisions],
        "without": list(graph.without),
    }


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table, folded where the terminal is narrower."""
    return "\n".join(table_lines([tuple(header), *(tuple(row) for row in rows)], rule=False))
