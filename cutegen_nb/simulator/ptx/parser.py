"""Parser of PTX text (PTX ISA, "Syntax", "Directives", "State Spaces, Types, and Variables")."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from struct import error

from cutegen_nb.simulator.ptx.body import SPACES, BodyReader
from cutegen_nb.simulator.ptx.model import Function, Instruction, Kernel, Module, Parameter, Variable
from cutegen_nb.simulator.ptx.tokens import PtxSyntaxError

__all__ = ["Kernel", "Module", "PtxSyntaxError", "parse"]


@lru_cache(maxsize=64)
def parse(text: str) -> Module:
    """Parse a whole PTX module; recent results are cached.

    Raises:
        PtxSyntaxError: the text is not PTX that this parser knows; the message names the line.
    """
    reader = _ModuleReader(text)
    try:
        return reader.module()
    except PtxSyntaxError:
        raise
    except (IndexError, KeyError, ValueError, OverflowError, RecursionError, error) as problem:
        raise PtxSyntaxError(
            f"PTX line {reader.line()}: the statement makes no sense ({problem})."
        ) from problem


class _ModuleReader(BodyReader):
    """Recursive-descent parser of a module."""

    def module(self) -> Module:
        kernels: dict[str, Kernel] = {}
        functions: dict[str, Function] = {}
        variables: list[Variable] = []
        version = target = ""
        while self.at < len(self.tokens):
            word = self.peek()
            if word == ".version":
                version = self.rest_of_line()[1]
            elif word == ".target":
                target = self.rest_of_line()[1]
            elif word == ".address_size":
                self.rest_of_line()
            elif word in {".file", ".loc"}:
                self.places.take(self.rest_of_line())
            elif word == ".section":
                self._skip_section()
            elif word in {".pragma", ".alias"}:
                self.skip_statement()
            else:
                self._declaration(kernels, functions, variables)
        return self._finished(kernels, functions, variables, version, target)

    def _finished(
        self,
        kernels: dict[str, Kernel],
        functions: dict[str, Function],
        variables: list[Variable],
        version: str,
        target: str,
    ) -> Module:
        shared = tuple(item for item in variables if item.space == "shared")
        placed = {
            name: replace(
                kernel,
                architecture=target,
                body=self._with_locations(kernel.body),
                static_smem_bytes=_static_bytes((*shared, *kernel.variables)),
            )
            for name, kernel in kernels.items()
        }
        others = {name: replace(one, body=self._with_locations(one.body)) for name, one in functions.items()}
        return Module(
            kernels=placed, functions=others, variables=tuple(variables), files=self.places.files,
            version=version, target=target,
        )  # fmt: skip

    def _declaration(
        self, kernels: dict[str, Kernel], functions: dict[str, Function], variables: list[Variable]
    ) -> None:
        external = False
        while self.peek() in {".visible", ".extern", ".weak", ".common"}:
            external = self.take() == ".extern" or external
        word = self.peek()
        if word == ".entry":
            kernel = self._entry()
            kernels[kernel.name] = kernel
        elif word == ".func":
            function = self._func()
            if function.body or function.name not in functions:
                functions[function.name] = function
        elif word in SPACES:
            variables.extend(self.variables("", external=external))
        else:
            raise PtxSyntaxError(f"PTX line {self.line()}: {word!r} begins no declaration known here.")

    def _skip_section(self) -> None:
        while self.take() != "{":
            pass
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(self.take(), 0)

    def _with_locations(self, body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
        """Set the source places of instructions; ``.file`` lines stand at the end, so this comes last."""
        return tuple(self._with_location(item) for item in body)

    def _with_location(self, item: Instruction) -> Instruction:
        file, line, column = self.places.place(self.located[item.column])
        return replace(item, file=file, line=line, column=column)

    # -- functions ------------------------------------------------------------------------------------------
    def _entry(self) -> Kernel:
        self.expect(".entry")
        name = self.take()
        parameters = self._parameters() if self.peek() == "(" else ()
        limits: dict[str, tuple[int, int, int]] = {}
        while self.peek() not in {"{", ";"}:
            word = self.take()
            numbers = []
            while self.peek() not in {"{", ";"} and not self.peek().startswith("."):
                if not self.accept(","):
                    numbers.append(self.integer())
            if word in {".reqntid", ".maxntid"}:
                limits[word] = (*numbers, 1, 1)[:3]  # type: ignore[assignment]
        draft = self.block_of()
        return Kernel(
            name=name, parameters=parameters, body=tuple(draft.body), labels=draft.labels,
            registers=draft.registers, variables=tuple(draft.variables),
            branch_targets=draft.branch_targets, required_threads=limits.get(".reqntid"),
            max_threads=limits.get(".maxntid"),
        )  # fmt: skip

    def _func(self) -> Function:
        self.expect(".func")
        returns = self._parameters() if self.peek() == "(" else ()
        name = self.take()
        parameters = self._parameters() if self.peek() == "(" else ()
        while self.peek() not in {"{", ";"}:
            self.take()
        if self.accept(";"):
            return Function(name=name, parameters=parameters, returns=returns)
        draft = self.block_of()
        return Function(
            name=name, parameters=parameters, returns=returns, body=tuple(draft.body), labels=draft.labels,
            registers=draft.registers, variables=tuple(draft.variables), branch_targets=draft.branch_targets,
        )  # fmt: skip

    def _parameters(self) -> tuple[Parameter, ...]:
        self.expect("(")
        result: list[Parameter] = []
        offset = 0
        while not self.accept(")"):
            if self.accept(","):
                continue
            (variable,) = self.declared()
            offset = _aligned(offset, variable.align_bytes)
            result.append(Parameter(name=variable.name, offset_bytes=offset, size_bytes=variable.size_bytes))
            offset += variable.size_bytes
        return tuple(result)


def _aligned(offset: int, align: int) -> int:
    return -(-offset // align) * align


def _static_bytes(variables: tuple[Variable, ...]) -> int:
    """Bytes of static shared memory, each variable aligned in order of declaration."""
    offset = 0
    for item in variables:
        if item.space == "shared" and item.size_bytes:
            offset = _aligned(offset, item.align_bytes) + item.size_bytes
    return offset
