"""Search in the CuTe DSL guide: sections for a request, chosen by tags and words.

A tag line below a heading in ``prompts/guide`` reads ``<!-- classes: softmax, norm; errors: RACE; words:
shuffle, one pass -->``. ``classes``, ``dtypes`` and ``architectures`` restrict a section; without them it
fits any request. ``only: failures`` keeps a section for requests that have an error, ``only: later`` keeps
one from the request for a first kernel. ``errors`` are verdicts and codes of messages; ``words`` are
additional search words.
Sections that fit are ranked by the words they share with the request. A word weighs more the fewer sections
contain it, and more in a heading or tag than in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cutegen_nb.core.errors import ConfigurationError
from cutegen_nb.core.ports import FIRST_KERNEL, Guide, GuideRequest

FIRST_ASKED = "A first kernel, compiled once, for static or dynamic sizes"
"""Request for a first kernel in words, by which sections of the guide are found."""
LONGEST_CHARACTERS = 9_000
"""Largest total length of the sections in one request: about 2,500 tokens."""
BESIDE_EXAMPLE_CHARACTERS = 4_500
"""Largest total length of the sections beside a worked example, which is a program already."""
TAGS = ("classes", "dtypes", "architectures", "only", "errors", "words")
"""Names allowed in a tag line."""
_MOST_SECTIONS = 4
"""Largest number of sections in one request."""
_LEAST_SHARE = 0.4
"""Share of the best section's score below which a section is left out: it shares a few common words only."""
_FROM_ERROR, _FROM_STRATEGY, _FROM_SOURCE = 4, 3, 1
"""Weights of a word by its source in the request: an error has few words, a kernel's source has many."""
_IN_HEADING = 4
"""Factor for a word in a heading or a tag."""
_BOUNDS = {"classes": 1.0, "dtypes": 2.0, "architectures": 1.0}
"""Restricting tags, with the score of a section whose tag names the request's own value."""
_IS_ERROR = 8.0
"""Score of a section that names the request's verdict or the code of its message."""
EXCERPT = re.compile(r"^```python excerpt \w+\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
"""Excerpt of a worked example, whose name stands behind ``excerpt``."""
BETWEEN_PIECES = "...\n"
"""Line between two pieces of an excerpt."""
_WORD = re.compile(r"[a-z][a-z0-9]+")
_DSL_NAME = re.compile(
    r"\b(?:cute|cutlass)(?:\.\w+)+|\bmake_\w+|\bpartition_\w+|\bcp_async\w*|\b\w*[sS]wizzle\w*"
)
"""Names of the DSL's API in a kernel's source."""
_EXCERPT = re.compile(r"^\s*(?:>\s*)?\d+ \|.*$|(?<=^  line )\d+: `.*$", re.MULTILINE)
"""Candidate lines quoted under an error, which are ignored: names such as row, lane or tile do not describe
the error."""
_COMMON = frozenset(
    re.findall(
        r"\w+",
        "the and for with that this into from not are has its each one all can than what when where does "
        "which cute cutlass torch nvgpu arch tensor float int kernel jit self def return import error note "
        "suggestion code call let make use value line file python",
    )
)
"""Words too common to tell sections apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideSection:
    """One section of a chapter."""

    chapter: str
    """Heading of the chapter."""
    title: str
    """Heading of the section."""
    text: str
    """Markdown text with the heading and without the tags."""
    tags: Mapping[str, frozenset[str]]
    """Values of the section's tags, by name."""

    def is_for(self, request: GuideRequest) -> bool:
        """Return whether class, dtypes and architecture fit `request`, as far as both name them.

        A section for failures fits only a request that has an error, one for later every request but that
        for a first kernel.
        """
        only = self.tagged("only")
        if ("failures" in only and not request.error) or ("later" in only and request.wanted == FIRST_KERNEL):
            return False
        asked = _bounds(request)
        return all(not asked[name] or not self.tagged(name) or self.named(name, asked) for name in _BOUNDS)

    def counts_for(self, request: GuideRequest) -> float:
        """Score of the section's tags for `request`, without the tag ``words``."""
        asked = _bounds(request)
        told = self.tagged("errors") & set(re.findall(r"\w+", request.error))
        known = sum(counts for name, counts in _BOUNDS.items() if self.named(name, asked))
        return known + (_IS_ERROR if told else 0.0)

    def tagged(self, name: str) -> frozenset[str]:
        """Values of a tag; empty without the tag."""
        return self.tags.get(name, frozenset())

    def named(self, name: str, asked: Mapping[str, frozenset[str]]) -> bool:
        """Return whether the tag `name` holds one of the values in `asked`."""
        return not self.tagged(name).isdisjoint(asked[name])


def no_example(request: GuideRequest) -> str:  # noqa: ARG001 - the port's
    """No worked example for any request."""
    return ""


class CuTeGuide:
    """Index of the guide's sections, and the worked examples that go before them."""

    def __init__(self, chapters: Mapping[str, str], example: Guide = no_example) -> None:
        """Index the `chapters`, texts by file name, whose sections begin with ``##``.

        `example` returns a worked example for a request. Raises ConfigurationError for a wrong tag.
        """
        self.sections = tuple(
            section for name in sorted(chapters) for section in sections_of(chapters[name], name)
        )
        self._example = example
        self._headings = [_heading_words(section) for section in self.sections]
        self._texts = [set(_words(section.text)) for section in self.sections]
        both = zip(self._headings, self._texts, strict=True)
        self._holders = Counter(word for heading, text in both for word in heading | text)

    def __call__(self, request: GuideRequest) -> str:
        """Return a worked example and the sections for `request` as Markdown; empty where none fits."""
        example = self._example(request)
        longest = BESIDE_EXAMPLE_CHARACTERS if example else LONGEST_CHARACTERS
        sections = (_unrepeated(section.text, example) for section in self.search(request, longest))
        return "\n".join([*([example] if example else []), *sections])

    def search(self, request: GuideRequest, longest: int = LONGEST_CHARACTERS) -> tuple[GuideSection, ...]:
        """Return the best sections for `request` that fit `longest` characters, in the guide's order."""
        words = query_words(request)
        scores = [self._score(index, request, words) for index in range(len(self.sections))]
        best = sorted(range(len(scores)), key=lambda index: -scores[index])[:_MOST_SECTIONS]
        chosen, length = [], 0
        for index in best:
            more = len(self.sections[index].text)
            if scores[index] > _LEAST_SHARE * scores[best[0]] and length + more <= longest:
                chosen.append(index)
                length += more
        return tuple(self.sections[index] for index in sorted(chosen))

    def _score(self, index: int, request: GuideRequest, words: Mapping[str, int]) -> float:
        """Score of the section at `index`; 0 where its tags exclude the request."""
        section = self.sections[index]
        if not section.is_for(request):
            return 0.0
        heading, text = self._headings[index], self._texts[index]
        return section.counts_for(request) + sum(
            # Weight of the word, divided by the number of sections that contain it (inverse document
            # frequency).
            counts * (_IN_HEADING if word in heading else 1) / self._holders[word]
            for word, counts in words.items()
            if word in heading or word in text
        )


def _unrepeated(text: str, example: str) -> str:
    """Leave out the excerpts that stand in the worked example, and the names of the kernels of the others."""

    def shown(found: re.Match[str]) -> str:
        is_repeated = all(piece in example for piece in found[1].split(BETWEEN_PIECES))
        return "" if is_repeated else f"```python\n{found[1]}```\n"

    return re.sub(r"\n{3,}", "\n\n", EXCERPT.sub(shown, text))


def query_words(request: GuideRequest) -> dict[str, int]:
    """Words of `request` with their weights; the highest weight wins for a word with several sources.

    A strategy asks for what the source has not yet, so names of the source count only without a strategy.
    """
    source = "" if request.strategy else request.source
    names = " ".join(sorted(set(_DSL_NAME.findall(source))))
    found = dict.fromkeys(_words(names), _FROM_SOURCE)
    found |= dict.fromkeys(_words(request.strategy), _FROM_STRATEGY)
    return found | dict.fromkeys(_words(_EXCERPT.sub("", request.error)), _FROM_ERROR)


def sections_of(chapter: str, name: str = "") -> tuple[GuideSection, ...]:
    """Split a chapter's Markdown into sections; `name` is its file's.

    Raises ConfigurationError for a wrong tag.
    """
    head, *parts = re.split(r"^## ", chapter, flags=re.MULTILINE)
    heading = head.strip().splitlines()[0].removeprefix("# ") if head.strip() else ""
    return tuple(_section(heading, part, name) for part in parts)


def _section(chapter: str, part: str, name: str) -> GuideSection:
    """Parse one section; `part` is its heading, without ``##``, and its text."""
    title, _, body = part.partition("\n")
    first, _, rest = body.partition("\n")
    line = re.fullmatch(r"<!-- (.*) -->", first.strip())
    tags = _tags(line[1], f"{name}, section {title!r}") if line else {}
    text = f"## {title}\n{rest if line else body}".rstrip()
    return GuideSection(chapter=chapter, title=title, text=f"{text}\n", tags=tags)


def _tags(line: str, where: str) -> dict[str, frozenset[str]]:
    """Parse a tag line, ``classes: softmax, norm; words: shuffle``, to values by name."""
    found = {}
    for item in line.split(";"):
        name, colon, values = item.partition(":")
        if not colon or name.strip() not in TAGS:
            raise ConfigurationError(
                f"{where}: no tag {item.strip()!r}; write one of {', '.join(TAGS)}, then a colon"
            )
        found[name.strip()] = frozenset(value.strip() for value in values.split(",") if value.strip())
    return found


def _bounds(request: GuideRequest) -> dict[str, frozenset[str]]:
    """Values that `request` has for the restricting tags."""
    return {
        "classes": frozenset(request.classes),
        "dtypes": frozenset(request.dtypes),
        "architectures": frozenset({request.architecture} - {""}),
    }


def _heading_words(section: GuideSection) -> set[str]:
    tagged = " ".join(sorted(section.tagged("words")))
    return set(_words(f"{section.chapter} {section.title} {tagged}"))


def _words(text: str) -> list[str]:
    """Lower-case words; a name with underscores yields its parts and the whole name."""
    lowered = text.lower()
    whole = re.findall(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+", lowered)
    words = (word for word in _WORD.findall(lowered) if len(word) > 2 and word not in _COMMON)  # noqa: PLR2004 - of letters
    return [*whole, *(_singular(word) for word in words)]


def _singular(word: str) -> str:
    """Strip a plural s, so that ``vectors`` and ``vector`` are the same word."""
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 4 else word  # noqa: PLR2004 - of letters
