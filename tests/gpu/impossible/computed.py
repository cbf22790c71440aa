"""What single large elements do to the sampled Huber loss at its real shape, by arithmetic: no kernel runs.

The answers of the reference, of the oracle and of 96_huber_loss's sample are computed on a CPU over 2^30
pairs, a chunk at a time; magnitude, gates and distance are those of the check "every part of every input".

    python tests/gpu/impossible/computed.py --json tests/gpu/impossible/recorded/computed_real.json
"""

from __future__ import annotations

import argparse
import datetime as dt
import hashlib
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from cutegen_nb.gpu import correctness
from cutegen_nb.gpu.checks import spikes
from cutegen_nb.gpu.correctness import Gate

HERE = Path(__file__).parent
NAME = "96_huber_loss"
COUNT = 1 << 30
CHUNK = 1 << 24
SCALE = 0.5
"""Of the predictions: drawn from 0 to 1 by the problem."""
WINDOW = 128
"""Elements that a warp steps over at a time: 32 groups of four, of which it reads the first and the ninth."""
READ = (0, 1, 2, 3, 32, 33, 34, 35)


@dataclass(slots=True, kw_only=True)
class Sums:
    """What has been added up of one kind of inputs."""

    count: int
    """Pairs in all."""
    reference: list[float] = field(default_factory=list)
    """Sums of chunks in float32, as pairwise sums give them."""
    oracle: float = 0.0
    """In float64."""
    sampled: float = 0.0
    """Of what 96_huber_loss reads, sixteen times each, in float64: better than the kernel itself."""

    def add(self, p: torch.Tensor, t: torch.Tensor) -> None:
        """One chunk."""
        sums = torch.nn.functional.smooth_l1_loss
        self.reference.append(float(sums(p, t, reduction="sum")))
        exact = sums(p.double(), t.double(), reduction="none")
        self.oracle += float(exact.sum())
        self.sampled += WINDOW / len(READ) * float(exact.view(-1, WINDOW)[:, list(READ)].sum())

    def means(self) -> dict[str, float]:
        """All three, as the problem gives them."""
        total = torch.tensor(self.reference, dtype=torch.float32).sum()
        return {
            "reference": float(total / self.count),
            "oracle": self.oracle / self.count,
            "sampled": self.sampled / self.count,
        }


def add_up(count: int, seed: int) -> Sums:
    """All three over the problem's own inputs."""
    generator = torch.Generator().manual_seed(seed)
    sums = Sums(count=count)
    for _ in range(0, count, CHUNK):
        size = min(count, CHUNK)
        sums.add(*(torch.rand(size, generator=generator) * scale for scale in (SCALE, 1.0)))
    return sums


def with_large(own: Sums, values: list[float], read: int) -> Sums:
    """The same with elements of the predictions made so large, `read` of them where the sample looks.

    What they replace is below one and does not count beside them.
    """
    return Sums(
        count=own.count,
        reference=[*own.reference, *(value - 0.5 for value in values)],
        oracle=own.oracle + sum(value - 0.5 for value in values),
        sampled=own.sampled + WINDOW / len(READ) * sum(value - 0.5 for value in values[:read]),
    )


def verdict(means: dict[str, float], gate: Gate) -> dict[str, object]:
    """Whether the sample passes, by the comparison that every output goes through."""
    reference, oracle, sampled = (
        torch.tensor(means[name], dtype=dtype)
        for name, dtype in (
            ("reference", torch.float32),
            ("oracle", torch.float64),
            ("sampled", torch.float32),
        )
    )
    found = correctness.compare(0, sampled, reference, oracle, gate, ())
    return {
        **means,
        "gate": asdict(gate),
        "sampled_passes": found.matches,
        "sampled_off_by": found.relative_l2_error,
        "reference_passes": correctness.compare(0, reference, reference, oracle, gate, ()).matches,
    }


def gate_of(means: dict[str, float], count: int) -> Gate:
    """The gate that the reference's own error gives."""
    return correctness.find_gate(
        torch.tensor(means["reference"], dtype=torch.float32),
        torch.tensor(means["oracle"], dtype=torch.float64),
        count,
    )


def compute(count: int, seed: int) -> dict[str, object]:
    """The problem's own inputs, then each number of large elements that the sample may happen to read."""
    began = time.monotonic()
    own = add_up(count, seed)
    means = own.means()
    rows = []
    torch.manual_seed(seed)
    like = torch.rand(1 << 12) * SCALE
    typical = float(like.double().mean())
    for factor in spikes.factors(count):
        values = spikes.values(typical * factor, spikes.COUNTS[0])
        full, lacking = with_large(own, values, 0).means(), with_large(own, values[:-1], 0).means()
        far = spikes.apart(
            torch.tensor(lacking["oracle"], dtype=torch.float64),
            torch.tensor(full["oracle"], dtype=torch.float64),
        )
        gate = gate_of(full, count)
        away = spikes.gates_away(far, gate)
        row = {"magnitude": typical * factor, "gates_away": away, "used": away >= spikes.NEEDED}
        if row["used"]:
            widened = spikes.widened(gate, far)
            row["by_number_read"] = [
                verdict(with_large(own, values, read).means(), widened) for read in range(len(values) + 1)
            ]
        rows.append(row)
        if row["used"]:
            break
    return {
        "name": NAME,
        "digest": hashlib.sha256((HERE / f"{NAME}.py").read_bytes()).hexdigest(),
        "how": "computed on a CPU; no kernel ran, and no GPU was used",
        "torch": torch.__version__.partition("+")[0],
        "date": f"{dt.datetime.now(dt.UTC):%Y-%m-%d}",
        "elements": count,
        "own_inputs": verdict(means, gate_of(means, count)),
        "large_elements": rows,
        "check": "every part of every input",
        "seconds": round(time.monotonic() - began, 1),
    }


def main() -> int:
    """Read the options, compute, write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--seed", type=int, default=96)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    text = json.dumps(compute(options.count, options.seed), indent=1)
    if options.json:
        options.json.write_text(text + "\n")
    sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
