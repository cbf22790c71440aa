"""Record a session of the mailbox again, from replies that a person wrote: ``record.py NAME [NAME ...]``.

The problem is ``problems/NAME.py``; the replies are ``NAME/ROUND.md``, and ``NAME/ROUND-2.md``, ``-3`` for
further requests of a round (diagnosis, repair). They lie in the mailbox before the prompts do, so
`cutegen-nb run --author manual` takes each at once; kernels are judged on the simulator. The result is
``NAME.cutegen`` beside this file.

A replay gives each reply whatever the prompt says by then, and notes where that is not the prompt it was
written for: record again after a change of templates, guide or feedback, so that the bundle shows today's
prompts, and rewrite a reply that no longer answers its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def replies(name: str) -> list[Path]:
    """The replies of a session, in no order that matters."""
    return sorted((HERE / name).glob("*.md"))


def record(name: str, folder: Path) -> Path:
    """Run the session `name` with its store in `folder` and write its bundle. Raises SystemExit where it stops."""
    mailbox = folder / "prompts"
    mailbox.mkdir(parents=True)
    given = replies(name)
    for path in given:
        shutil.copy(path, mailbox / f"{name}-{path.stem}-reply.md")
    rounds = len({path.stem.partition("-")[0] for path in given})
    problem = Path("problems") / f"{name}.py"  # a bundle keeps the path as it was given
    where = ("--store", str(folder))
    knowledge = folder / "knowledge"
    _cutegen(
        knowledge,
        *("run", str(problem), "--author", "manual", "--device", "simulator", "--rounds", str(rounds)),
        *where,
    )
    unasked = [path.stem for path in given if not (mailbox / f"{name}-{path.stem}.md").exists()]
    if unasked:
        message = f"{name}: nobody asked for {', '.join(unasked)}: the session took another way; see {folder}"
        raise SystemExit(message)
    bundle = HERE / f"{name}.cutegen"
    _cutegen(knowledge, "export", name, "-o", str(bundle), *where)
    return bundle


def _cutegen(knowledge: Path, *arguments: str) -> None:
    """A command, with this checkout's package. Raises SystemExit with its status where it fails."""
    # A knowledge base of its own: what this machine learned must not choose the strategies of a recording.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUTEGEN_KNOWLEDGE": str(knowledge)}
    command = [sys.executable, "-m", "cutegen_nb", *arguments]
    done = subprocess.run(
        command, cwd=HERE, env=environment, stdin=subprocess.DEVNULL, timeout=900, check=False
    )
    if done.returncode:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    for each in sys.argv[1:] or sorted(path.stem for path in (HERE / "problems").glob("*.py")):
        record(each, Path(tempfile.mkdtemp(prefix=f"{each}-")) / "store")
