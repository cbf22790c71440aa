"""Tokeniser of PTX text (PTX ISA, "Lexical Elements") and a cursor over the tokens."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from cutegen_nb.simulator.ptx.model import Immediate

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
"""Characters of an error message at most: a token may be as long as the text."""


class PtxSyntaxError(ValueError):
    """Text that is not PTX known to this parser; the message names the line and the token there."""

    def __init__(self, message: str) -> None:
        super().__init__(message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …")


@dataclass(frozen=True, slots=True)
class Token:
    """Token of PTX text."""

    kind: str
    """Kind: ``string``, ``number``, ``word``, ``mark`` or ``asm``."""
    text: str
    """Text as written."""
    line: int
    """Line in the PTX text, from 1."""


def tokens_of(text: str) -> list[Token]:
    """All tokens without white space and comments, except the comments around inline assembly (``asm``).

    Raises:
        PtxSyntaxError: a character begins no token.
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
    """Cursor over the tokens of a text."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens_of(text)
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Text of the token ``ahead`` places on, empty past the end."""
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
        """Take the current token and return its text.

        Raises:
            PtxSyntaxError: the text has ended.
        """
        if self.at >= len(self.tokens):
            raise PtxSyntaxError(f"PTX line {self.line()}: the text ends in the middle of a statement.")
        self.at += 1
        return self.tokens[self.at - 1].text

    def expect(self, wanted: str) -> None:
        """Take the token ``wanted``.

        Raises:
            PtxSyntaxError: the current token is another one.
        """
        line, seen = self.line(), self.take()
        if seen != wanted:
            raise PtxSyntaxError(f"PTX line {line}: {wanted!r} expected, {seen!r} seen.")

    def accept(self, wanted: str) -> bool:
        """Take the token ``wanted`` if it is the current one. Return whether it was taken."""
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def rest_of_line(self) -> list[str]:
        """Take the remaining tokens of the current line and return their texts."""
        line, result = self.line(), []
        while self.at < len(self.tokens) and self.tokens[self.at].line == line:
            result.append(self.take())
        return result

    def integer(self) -> int:
        """Take an integer.

        Raises:
            PtxSyntaxError: the current token is no integer.
        """
        sign = -1 if self.accept("-") else 1
        line, text = self.line(), self.take()
        try:
            return sign * int(text.rstrip("U"), 0)
        except ValueError:
            raise PtxSyntaxError(f"PTX line {line}: an integer expected, {text!r} seen.") from None

    def skip_statement(self) -> None:
        """Take all tokens up to and including the next semicolon."""
        while self.take() != ";":
            pass

    def immediate(self) -> Immediate:
        """Take a constant (PTX ISA, "Constants").

        Raises:
            PtxSyntaxError: the current token is no constant.
        """
        sign = -1 if self.accept("-") else 1
        line, text = self.line(), self.take()
        if text[:2] in {"0f", "0F"}:  # bit pattern of a float32, as 0d is of a float64
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
