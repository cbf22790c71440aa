"""Writers of convolutions and of maxima over windows for tests: one thread an output, in two dimensions."""

from dataclasses import dataclass

from cutegen_nb.authors.offline.expressions.pointwise import short_name
from cutegen_nb.authors.offline.operators.operator import OperatorMatch, OperatorText
from cutegen_nb.core.graph import Ref

TEXT = """
@cute.kernel
def NAME_kernel(TENSORS):
    tidx, _, _ = cute.arch.thread_idx()
    bidx, _, _ = cute.arch.block_idx()
    N, C, H, W = mD.shape
    x, y, c, n = cute.idx2crd(bidx * 32 + tidx, (W, H, C, N))
    if bidx * 32 + tidx < cute.size(mD):
        acc = cutlass.Float32(START)
        for k in cutlass.range(DEPTH):
            for r in cutlass.range(ROWS):
                for s in cutlass.range(COLUMNS):
                    i, j = y * STRIDE - PADDING + r, x * STRIDE - PADDING + s
                    if i >= 0 and i < mX.shape[2] and j >= 0 and j < mX.shape[3]:
                        STEP
        FINISH
        mD[n, c, y, x] = cutlass.Float32(VALUE).to(mD.element_type)


@cute.jit
def NAME_host(TENSORS, stream: cuda.CUstream):
    NAME_kernel(ARGUMENTS).launch(grid=(cute.ceil_div(cute.size(mD), 32), 1, 1), block=(32, 1, 1), stream=stream)


def NAME(launch, PARAMETERS):
    extents = [(e + 2 * PADDING - k) // STRIDE + 1 for e, k in zip(FIRST.shape[2:], (HEIGHT, WIDTH))]
    made = torch.empty((FIRST.shape[0], CHANNELS, *extents), dtype=FIRST.dtype, device=FIRST.device)
    launch(NAME_host, (PARAMETERS, made))
    return made
"""


@dataclass(frozen=True)
class Numbers:
    window: tuple
    stride: int
    padding: int
    weighted: bool


class ThreadOperators:
    def matches(self, graph):
        found = []
        for node in graph.nodes:
            op = short_name(node.op)
            refs = tuple(arg for arg in node.args if isinstance(arg, Ref))
            if op == "convolution":
                kernel = graph.spec(refs[1]).shape[2:]
                numbers = Numbers(kernel, node.args[3][0], node.args[4][0], True)
            elif op == "max_pool2d_with_indices":
                numbers = Numbers(node.args[1], node.args[2][0], 0, False)
            else:
                continue
            found.append(
                OperatorMatch(
                    nodes=frozenset({node.name}), result=Ref(node.name), operands=refs, attributes=numbers
                )
            )
        return tuple(found)

    def menu(self, call):
        return ()

    def write(self, call, applied):
        numbers, extras = call.attributes, call.tail.extras if call.tail else ()
        own = ["mX", *(["mW"] if numbers.weighted else []), *(["mB"] if len(call.operands) > 2 else [])]
        names = [*own, *(f"m_{extra.name}" for extra in extras), "mD"]
        first, weight = call.operands[0].name, call.operands[-1 if len(call.operands) < 2 else 1].name
        element = "mX[n, k, i, j].to(cutlass.Float32)"
        step = f"acc += {element} * mW[c, k, r, s].to(cutlass.Float32)"
        if not numbers.weighted:
            element = "mX[n, c, i, j].to(cutlass.Float32)"
            step = f"acc = cutlass.max(acc, {element})"
        finish = ["acc = acc + mB[c].to(cutlass.Float32)"] if "mB" in own else []
        finish += [f"{extra.name}_value = m_{extra.name}[n, c, y, x].to(cutlass.Float32)" for extra in extras]
        finish += call.tail.lines if call.tail else []
        values = {
            "NAME": call.name, "TENSORS": ", ".join(f"{name}: cute.Tensor" for name in names),
            "ARGUMENTS": ", ".join(names), "START": "0.0" if numbers.weighted else 'float("-inf")',
            "DEPTH": "mW.shape[1]" if numbers.weighted else "1", "STEP": step,
            "ROWS": "mW.shape[2]" if numbers.weighted else str(numbers.window[0]),
            "COLUMNS": "mW.shape[3]" if numbers.weighted else str(numbers.window[1]),
            "HEIGHT": str(numbers.window[0]), "WIDTH": str(numbers.window[1]), "FIRST": first,
            "STRIDE": str(numbers.stride), "PADDING": str(numbers.padding),
            "CHANNELS": f"{weight}.shape[0]" if numbers.weighted else f"{first}.shape[1]",
            "FINISH": "\n        ".join(finish) or "pass", "VALUE": call.tail.value if call.tail else "acc",
            "PARAMETERS": ", ".join(item.name for item in (*call.operands, *extras)),
        }  # fmt: skip
        text = TEXT
        for word, value in values.items():
            text = text.replace(word, value)
        return OperatorText(source=text, constants={})
