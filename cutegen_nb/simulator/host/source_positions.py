"""Faster source positions of the operations that the DSL traces.

The DSL looks up the source line of every operation it builds. It walks the code object's table of positions
from its start each time. That is a tenth of a short kernel's compilation and nearly all of a long one's. Here
a position is looked up once for each instruction of a code object: a pooling kernel with 32 guarded loads
compiles in 1.0 s instead of 28 (`benchmarks/compile_time.py`). The DSL also compares the module of each
calling frame with the names of its own modules, some ten frames an operation: once a code object here.
Workers on a GPU use it too.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

_MOST = 20_000
"""Most positions kept, some 15 MB, before all are dropped: a process that compiles for long does not grow."""


def install() -> None:
    """Let the DSL of this process keep the source positions it looks up. Raises AttributeError."""
    from cutlass._mlir_helpers import op

    op._fast_frameinfo = kept(op._fast_frameinfo)
    op._is_framework_stack_frame = kept(op._is_framework_stack_frame, by_instruction=False)


def kept(look_up: Callable[[FrameType], Any], *, by_instruction: bool = True) -> Callable[[FrameType], Any]:
    """Return `look_up` with its answers kept by code object and instruction, on which alone they depend.

    Without `by_instruction` they are kept by code object.
    """
    known: dict[tuple[int, int], tuple[CodeType, Any]] = {}

    def look_up_once(frame: FrameType) -> Any:
        code = frame.f_code
        key = (id(code), frame.f_lasti if by_instruction else 0)
        entry = known.get(key)
        # The code object is kept, so its id stays its own. Comparing or hashing it would take far longer.
        if entry is None:
            if len(known) >= _MOST:
                known.clear()
            entry = known[key] = (code, look_up(frame))
        return entry[1]

    return look_up_once
