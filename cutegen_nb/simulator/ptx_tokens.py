"""Tokens of PTX text (PTX ISA, "Lexical Elements") and a cursor over them."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from cutegen_nb.simulator.ptx_model import Immediate

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|/\*.*?\*/)
    |(?P<newline>\n)
    |(?P<asm>//\s*(?:begin|end)\sinline\sasm)
    |(?P<comment>//[^\n]*)
    |(?P<string>"[^"\n]*")
    |(?P<number>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|\d+\.\d*(?:[eE][-+]?\d+)?|\d+U?)
    |(?P<word>[%$_A-Za-z.](?:[\w$.%]|::)*)
    |(?P<mark>[{}\[\]();,:@!|<>=+\-])""",
    re.VERBOSE | re.DOTALL,
)


_LONGEST = 300
"""Characters of a message: a token may be as long as the text."""


class PtxSyntaxError(ValueError):
    """The text is not PTX that this parser knows; names the line and what stood there."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …")


@dataclass(frozen=True, slots=True)
class Token:
    """One token."""

    kind: str
    """``string``, ``number``, ``word``, ``mark`` or ``asm``."""
    text: str
    """As written."""
    line: int
    """From 1."""


def tokens_of(text: str) -> list[Token]:
    """All tokens but space and comments; marks of inline assembly stay.

    Raises:
        PtxSyntaxError: a character that begins no token.
    """
    result: list[Token] = []
    line, position = 1, 0
    text = text.split("\0", 1)[0]
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PtxSyntaxError(f"PTX line {line}: {text[position : position + 20]!r} is no PTX token.")
        kind = match.lastgroup or ""
        if kind in {"string", "number", "word", "mark", "asm"}:
            result.append(Token(kind, match.group(), line))
        line += match.group().count("\n")
        position = match.end()
    return result


class Cursor:
    """Reads tokens one after the other."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Text of a token, empty past the end."""
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def kind(self) -> str:
        """Kind of the current token, empty past the end."""
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def line(self) -> int:
        """Line of the current token."""
        if not self.tokens:
            return 1
        return self.tokens[min(self.at, len(self.tokens) - 1)].line

    def take(self) -> str:
        """The current token's text, left behind.

        Raises:
            PtxSyntaxError: the text ends here.
        """
        if self.at >= len(self.tokens):
            raise PtxSyntaxError(f"PTX line {self.line()}: the text ends in the middle of a statement.")
        self.at += 1
        return self.tokens[self.at - 1].text

    def expect(self, wanted: str) -> None:
        """Take this token.

        Raises:
            PtxSyntaxError: another one stands there.
        """
        line, seen = self.line(), self.take()
        if seen != wanted:
            raise PtxSyntaxError(f"PTX line {line}: {wanted!r} expected, {seen!r} seen.")

    def accept(self, wanted: str) -> bool:
        """Take this token if it stands there."""
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def rest_of_line(self) -> list[str]:
        """Take the tokens of the current line."""
        line, result = self.line(), []
        while self.at < len(self.tokens) and self.tokens[self.at].line == line:
            result.append(self.take())
        return result

    def integer(self) -> int:
        """Take an integer.

        Raises:
            PtxSyntaxError: it is none.
        """
        sign = -1 if self.accept("-") else 1
        line, text = self.line(), self.take()
        try:
            return sign * int(text.rstrip("U"), 0)
        except ValueError:
            raise PtxSyntaxError(f"PTX line {line}: an integer expected, {text!r} seen.") from None

    def skip_statement(self) -> None:
        """Take everything up to the next semicolon."""
        while self.take() != ";":
            pass

    def immediate(self) -> Immediate:
        """Take a constant.

        Raises:
            PtxSyntaxError: it is none.
        """
        sign = -1 if self.accept("-") else 1
        line, text = self.line(), self.take()
        if text[:2] in {"0f", "0F"}:
            bits = int("0x" + text[2:], 0)
            return Immediate(value=struct.unpack("<f", struct.pack("<I", bits))[0], bits=bits)
        if text[:2] in {"0d", "0D"}:
            bits = int("0x" + text[2:], 0)
            return Immediate(value=struct.unpack("<d", struct.pack("<Q", bits))[0], bits=bits)
        try:
            if "." in text:
                return Immediate(value=sign * float(text))
            return Immediate(value=sign * int(text.rstrip("U"), 0))
        except ValueError:
            raise PtxSyntaxError(f"PTX line {line}: a constant expected, {text!r} seen.") from None
