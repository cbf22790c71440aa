"""Chapters of the CuTe DSL guide for a request: found by BM25 among the sections of ``prompts/guide``.

The query is what the author has at hand: the words that the parent's source uses of the DSL, the strategy,
the error. Sections are added, best first, as long as they fit; their order in the answer is the guide's own.

BM25 after Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), by bm25s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

LONGEST_CHARACTERS = 9_000
"""Of the chapters in one request, about 2,500 tokens."""
_MOST_SECTIONS = 4
_WORD = re.compile(r"[a-z][a-z0-9]+")
_DSL_NAME = re.compile(
    r"\b(?:cute|cutlass)(?:\.\w+)+|\bmake_\w+|\bpartition_\w+|\bcp_async\w*|\b\w*[sS]wizzle\w*"
)
_EXCERPT = re.compile(r"^\s*(?:>\s*)?\d+ \|.*$|(?<=^  line )\d+: `.*$", re.MULTILINE)
"""Lines of the candidate under an error: their names (row, lane, tile) say nothing of what went wrong."""
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and for with that this into from not are has its each one all can than what when where does "
        "which cute cutlass torch nvgpu arch tensor float int kernel jit self def return import error note "
        "suggestion code call make use value line file python",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One section of a chapter."""

    chapter: str
    """The chapter's heading."""
    title: str
    """Its own."""
    text: str
    """With its heading, as Markdown."""


Score = Callable[[list[str]], list[float]]
"""How well each section answers a query of these words."""


class CuTeGuide:
    """The guide, searched."""

    def __init__(self, chapters: Mapping[str, str], longest_characters: int = LONGEST_CHARACTERS) -> None:
        """`chapters` are texts by file name; sections begin with ``##``."""
        self.sections = tuple(section for name in sorted(chapters) for section in sections_of(chapters[name]))
        self._longest = longest_characters
        self._score: Score | None = None

    def __call__(self, source: str, strategy: str, error: str) -> str:
        """Sections as Markdown for a parent's source, a strategy and an error text; any may be empty.

        Raises ImportError where bm25s is not installed.
        """
        chosen = self.search(query_words(source, strategy, error))
        return "\n".join(section.text for section in chosen)

    def search(self, words: list[str]) -> tuple[Section, ...]:
        """The best sections for these words, as many as fit, in the guide's order."""
        if not words or not self.sections:
            return ()
        if self._score is None:
            # A section is about what its title says: each of these words counts twice more.
            self._score = _bm25(
                [_words(f"{item.chapter} {item.title} {item.title} {item.text}") for item in self.sections]
            )
        scores = self._score(words)
        best = sorted(range(len(scores)), key=lambda index: -scores[index])[:_MOST_SECTIONS]
        chosen, length = [], 0
        for index in best:
            length += len(self.sections[index].text)
            if scores[index] <= 0 or length > self._longest:
                break
            chosen.append(index)
        return tuple(self.sections[index] for index in sorted(chosen))


def query_words(source: str, strategy: str, error: str) -> list[str]:
    """The words to search by. An error's and a strategy's count more often than those of a long source."""
    names = sorted(set(_DSL_NAME.findall(source)))
    return [*_words(_EXCERPT.sub("", error)) * 4, *_words(strategy) * 3, *_words(" ".join(names))]


def sections_of(chapter: str) -> tuple[Section, ...]:
    """The sections of a chapter's Markdown."""
    head, *parts = re.split(r"^## ", chapter, flags=re.MULTILINE)
    heading = head.strip().splitlines()[0].removeprefix("# ") if head.strip() else ""
    return tuple(
        Section(chapter=heading, title=part.splitlines()[0], text=f"## {part.rstrip()}\n") for part in parts
    )


def _words(text: str) -> list[str]:
    """Lower-case words; names with underscores and dots come apart and stay whole too."""
    lowered = text.lower()
    whole = re.findall(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+", lowered)
    words = (word for word in _WORD.findall(lowered) if len(word) > 2 and word not in _COMMON)  # noqa: PLR2004 - of letters
    return [*whole, *(_singular(word) for word in words)]


def _singular(word: str) -> str:
    """``vectors`` and ``vector`` are one word here."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 4 else word  # noqa: PLR2004 - of letters


def _bm25(texts: list[list[str]]) -> Score:
    import bm25s  # noqa: PLC0415 - numpy and a tenth of a second that only a request needs

    index = bm25s.BM25()
    index.index(texts, show_progress=False)

    def score(words: list[str]) -> list[float]:
        known = [word for word in words if word in index.vocab_dict]
        return [float(value) for value in index.get_scores(known)] if known else [0.0] * len(texts)

    return score
