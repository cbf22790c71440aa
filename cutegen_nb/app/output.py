"""JSON objects that the commands print, and their plain tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cutegen_nb.analysis.figures.baselines import missing_baselines
from cutegen_nb.analysis.figures.spending import notes_of
from cutegen_nb.analysis.hardware.occupancy import launch_occupancy
from cutegen_nb.analysis.hardware.roofline import place
from cutegen_nb.analysis.hardware.zone import zone
from cutegen_nb.analysis.history.ended import end_kind
from cutegen_nb.analysis.history.lineage_graph import lineage
from cutegen_nb.analysis.history.prediction import round_scores
from cutegen_nb.analysis.history.session_summary import SessionSummary
from cutegen_nb.analysis.history.summary import decision
from cutegen_nb.analysis.population.members import member_round
from cutegen_nb.analysis.population.summary import population_rows, speed_source
from cutegen_nb.core.codec import encode
from cutegen_nb.core.device import Device, DeviceKind
from cutegen_nb.core.evaluation import Evaluation
from cutegen_nb.core.graph import Graph
from cutegen_nb.core.problem import Admission, ProblemFacts, Workload
from cutegen_nb.core.profile import LaunchProfile
from cutegen_nb.core.round import Epoch, Round
from cutegen_nb.core.session import Session
from cutegen_nb.core.simulation import ProgramRun
from cutegen_nb.core.timing import BaselineTiming
from cutegen_nb.prompting.facts import tensor_text
from cutegen_nb.prompting.memory import round_label
from cutegen_nb.report.terminal.fitting import table_lines


def session_json(session: Session, report: str | None) -> dict[str, Any]:
    """Return the object that ``run --json`` and ``demo --json`` print; `report` is the path of the page."""
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
        "library": _plain(session.problem.library),
        "rounds": [round_json(session, item) for item in session.rounds],
        "best": round_json(session, best) if best else None,
        "report": report,
        "epochs": [_epoch_json(session, item) for item in session.epochs],
        "stopped": session.stopped,
        "end": end_kind(session.stopped).value,
    }


def _epoch_json(session: Session, epoch: Epoch) -> dict[str, Any]:
    kept = (member_round(session, digest, epoch.number) for digest in epoch.members)
    return {
        "epoch": epoch.number,
        "members": [f"r{item.number}" for item in kept if item],
        "duels": _plain(epoch.duels),
        "decisions": _plain(epoch.decisions),
        "restarted": epoch.restarted,
    }


def population_json(session: Session) -> dict[str, Any]:
    """Return the object that ``population SESSION --json`` prints: kernels and epochs, oldest first."""
    place = zone(session.facts, session.device)
    return {
        "session": session.name,
        "speed": speed_source(session),
        "zone": place.name.value if place else None,
        "kernels": [_plain(row) for row in population_rows(session)],
        "epochs": [_epoch_json(session, item) for item in session.epochs],
        "stopped": session.stopped,
        "end": end_kind(session.stopped).value,
    }


def problem_json(name: str, facts: ProblemFacts) -> dict[str, Any]:
    """Return the facts of a problem at its full and its scaled size: FLOPs, bytes, tensors, admission."""
    return {
        "name": name,
        "class": facts.workload_class.value,
        "dtype": facts.dtype,
        "flops": facts.full.flops,
        "least_bytes": facts.full.least_bytes,
        "full": _workload_json(facts.full),
        "scaled": _workload_json(facts.scaled),
        "warnings": list(facts.warnings_on(DeviceKind.SIMULATOR)),
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
    """Return the kind, name and architecture of the device that candidates ran on."""
    return {"kind": device.kind.value, "name": device.name, "architecture": device.architecture}


def round_json(session: Session, item: Round) -> dict[str, Any]:
    """Return one round: strategy, verdict, counters, times, the decision and its maker."""
    evaluation, candidate = item.evaluation, item.candidate
    roof = place(session.facts, session.device, evaluation)
    made = decision(item)
    return {
        "number": item.number,
        "revision": f"r{item.number}",
        "stage": item.stage.value,
        "stage_because": item.stage_because or None,
        "chosen_because": item.chosen_because or None,
        "claims": list(round_scores(session, item)),
        "strategy": item.strategy.name if item.strategy else None,
        "verdict": round_label(item),
        "relation": item.comparison.relation.value if item.comparison else None,
        "same_as": (item.comparison.same_as or None) if item.comparison else None,
        "reason": item.comparison.reason if item.comparison else _why(item),
        "approved": item.approved,
        "library": _plain(evaluation.library) if evaluation else [],
        "tier": evaluation.tier.value if evaluation else None,
        "provisional": list(evaluation.provisional) if evaluation else [],
        "exhibits": [_plain(one) for one in evaluation.exhibits] if evaluation else [],
        "decided_by": made.by if made else None,
        "attempts": len(item.attempts),
        "candidate": candidate.digest if candidate else None,
        "counters": _counters_json(evaluation),
        "moved_over_least": roof.moved_over_least,
        "estimated_s": item.comparison.estimated_s if item.comparison else None,
        "timing": _timing_json(evaluation),
        "sol_fraction": roof.sol_fraction,
        "seconds": item.seconds,
        "usage": _plain(item.usage),
        "ended": [ended.text for ended in item.ended],
        "notes": list(notes_of(item.attempts)),
        "slot": _plain(item.slot) if item.slot else None,
        "aligned": _plain(item.aligned) if item.aligned else None,
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
    """Return every launch with its resources, its occupancy and its counters by source line."""
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
    """Return the counters that are not 0; most source lines have few."""
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
        "baselines_missing": [
            {"name": name, "reason": reason} for name, reason in missing_baselines(evaluation)
        ],
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
    """Return the object that ``evaluate --json`` prints."""
    return {
        "verdict": evaluation.label,
        "tier": evaluation.tier.value,
        "provisional": list(evaluation.provisional),
        "candidate_sha256": evaluation.candidate_digest,
        "problem_sha256": evaluation.problem_digest,
        "passed": evaluation.passed,
        "library": _plain(evaluation.library),
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
        "work": _plain(evaluation.work) if evaluation.work else None,
        "log": evaluation.log,
        "seconds": evaluation.duration_s,
        "stage_seconds": [{"stage": name, "seconds": seconds} for name, seconds in evaluation.stage_seconds],
    }


def simulation_json(run: ProgramRun) -> dict[str, Any]:
    """Return the object that ``simulate --json`` writes. Every figure is a simulated count, none a time."""
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
    """Encode a value as JSON, without the type names that the codec adds."""
    return _untagged(encode(value))


def _untagged(data: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(data, dict):
        return {key: _untagged(item) for key, item in data.items() if key != "_"}
    if isinstance(data, list):
        return [_untagged(item) for item in data]
    return data


def sessions_json(sessions: Sequence[SessionSummary]) -> list[dict[str, Any]]:
    """Return the readable sessions of the list that ``sessions --json`` prints."""
    return [
        {
            "session": item.name,
            "problem": item.problem,
            "class": item.workload_class,
            "device": item.device,
            "author": item.author,
            "library": _plain(item.library),
            "rounds": item.rounds,
            "epochs": item.epochs,
            "best": None if item.best is None else f"r{item.best}",
            "verdict": item.shown.verdict if item.shown else None,
            "seconds": item.shown.seconds if item.shown else None,
            "measured": item.shown.is_measured if item.shown else None,
            "speedups": item.shown.speedups if item.shown else None,
            "gain": item.gain,
            "created_at": item.created_at,
            "stopped": item.stopped,
            "end": end_kind(item.stopped).value,
            "damaged": None,
        }
        for item in sessions
    ]


def damaged_json(reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the unreadable sessions of the same list, each with the reason under ``damaged``."""
    unknown = (
        "problem",
        "class",
        "device",
        "author",
        "library",
        "rounds",
        "epochs",
        "best",
        "verdict",
        "seconds",
        "measured",
        "speedups",
        "gain",
        "created_at",
        "stopped",
        "end",
    )
    return [
        {"session": name, **dict.fromkeys(unknown), "damaged": reason} for name, reason in reasons.items()
    ]


def lineage_json(session: Session) -> dict[str, Any]:
    """Return the object that ``sessions SESSION --json`` prints: the revisions with their parents."""
    graph = lineage(session)
    return {
        "session": session.name,
        "revisions": [_plain(one) for one in graph.revisions],
        "without": list(graph.without),
    }


def columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a plain table, folded to the width of the terminal."""
    return "\n".join(table_lines([tuple(header), *(tuple(row) for row in rows)], rule=False))
