"""Static screening of a candidate's text before it runs.

Only three facts refuse a candidate: it does not parse, has no ``ModelNew``, or has no ``@cute.kernel``.
Everything else is a flag for a person. Reading code misses cheats and accuses honest code; evidence from a
run does not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cutegen_nb.core.finding import Finding, Severity
from cutegen_nb.core.library import Library, LibraryFamily, family_of

_COMPUTE = frozenset({
    "abs", "add", "addmm", "amax", "amin", "argmax", "argmin", "avg_pool1d", "avg_pool2d", "baddbmm",
    "batch_norm", "bmm", "clamp", "conv1d", "conv2d", "conv3d", "cosine_similarity", "cross_entropy",
    "cumprod", "cumsum", "div", "einsum", "elu", "erf", "exp", "gelu", "group_norm", "hardtanh",
    "huber_loss", "kl_div", "layer_norm", "leaky_relu", "linear", "log", "log_softmax", "logsumexp",
    "matmul", "max", "max_pool1d", "max_pool2d", "mean", "min", "mish", "mm", "mse_loss", "mul", "multiply",
    "norm", "normalize", "pow", "prod", "relu", "relu6", "rms_norm", "rsqrt",
    "scaled_dot_product_attention", "selu", "sigmoid", "silu", "sin", "softmax", "softplus", "softsign",
    "sqrt", "std", "sub", "sum", "tanh", "tensordot", "triplet_margin_loss", "var",
})  # fmt: skip
"""Functions of ``torch``, ``torch.nn.functional``, ``torch.special`` and ``torch.linalg`` that compute."""
_TORCH_MODULES = frozenset({"torch", "torch.nn.functional", "torch.special", "torch.linalg"})
_REACHES_INSIDE = frozenset(
    {"ctypes", "gc", "inspect", "linecache", "mmap", "marshal", "dis", "faulthandler"}
)
"""Modules that give access to the process's own memory and frames."""
_REACHES_OUT = frozenset(
    {
        "socket",
        "urllib",
        "http",
        "requests",
        "subprocess",
        "multiprocessing",
        "shutil",
        "pathlib",
        "tempfile",
        "pickle",
        "sqlite3",
    }
)
"""Modules that give access to files, the network or other processes."""
_THREADS = frozenset({"threading", "concurrent", "asyncio", "_thread"})
_RUNS_TEXT = frozenset({"exec", "eval", "compile", "__import__"})
"""Builtins that execute text or import by name."""
_TELLING_ATTRIBUTES = {
    "_getframe": ("inside-python", "_getframe reads other functions' variables"),
    "f_back": ("inside-python", "f_back reads other functions' variables"),
    "f_locals": ("inside-python", "f_locals reads other functions' variables"),
    "f_globals": ("inside-python", "f_globals reads other functions' variables"),
    "__subclasses__": ("inside-python", "__subclasses__ finds classes of other modules"),
    "_version": (
        "kept-result",
        "_version changes with each write to a tensor, so it can be the key of a cached result",
    ),
    "_make_subclass": ("tensor-subclass", "a tensor subclass may compute only when the output is read"),
    "_disable_current_modes": ("modes-off", "it switches off PyTorch's modes, by which it is observed"),
    "accessPolicyWindow": ("l2-policy", "lines kept in the L2 make a timed call look faster"),
    "set_float32_matmul_precision": ("global-setting", "the precision of PyTorch's own products is changed"),
    "register_module_forward_hook": ("patched", "a hook on every module sees and changes the reference too"),
}
"""Suspicious attributes and imported names: kind of the flag and its sentence."""
_PATCHED = frozenset({"torch", "time", "builtins", "sys"})
"""Modules whose attributes a candidate has no reason to set; ``torch.backends`` is flagged as a setting."""
_FORKS = frozenset({"fork", "forkpty", "system", "popen", "posix_spawn", "execv", "execve", "kill", "_exit"})
"""Functions of ``os`` that start, replace or end processes."""


def screen(source: str, library: Library = ()) -> tuple[Finding, ...]:
    """Return the findings in `source`, those that refuse it first. The source is parsed, never executed.

    Calls of the families in `library`, which the problem leaves to PyTorch, are not flagged.
    """
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        message = f"The candidate does not parse: {error.msg}."
        return (
            Finding(kind="syntax-error", message=message, line=error.lineno or 0, column=error.offset or 0),
        )
    except (ValueError, RecursionError, MemoryError) as error:
        return (Finding(kind="syntax-error", message=f"The candidate does not parse: {error}."),)
    names = _Aliases(tree)
    decisive = tuple(_missing(tree, names))
    flags = sorted(_flags(tree, names, library), key=lambda item: (item.line, item.column))
    return (*decisive, *flags)


class _Aliases:
    """Full names of imported modules and functions, so that ``import torch as t`` hides nothing."""

    def __init__(self, tree: ast.Module) -> None:
        self._full: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for item in node.names:
                    name = item.asname or item.name.partition(".")[0]
                    self._full[name] = item.name if item.asname else name
            elif isinstance(node, ast.ImportFrom):
                for item in node.names:
                    self._full[item.asname or item.name] = f"{node.module or ''}.{item.name}"

    def full_name(self, node: ast.expr) -> str:
        """Return the full dotted name: ``torch.exp`` for ``t.exp``.

        Empty for an expression that is no dotted name.
        """
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self._full.get(node.id, node.id))
        return ".".join(reversed(parts))


def _missing(tree: ast.Module, names: _Aliases) -> Iterator[Finding]:
    classes = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    assigned = {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    if "ModelNew" not in classes | assigned:
        message = "The candidate has no class ModelNew; it must define one with Model's signature."
        yield Finding(kind="no-model", message=message)
    if not any(_is_kernel(node, names) for node in ast.walk(tree)):
        message = "The candidate has no function decorated with @cute.kernel; the kernel must be CuTe DSL."
        yield Finding(kind="no-kernel", message=message)


def _is_kernel(node: ast.AST, names: _Aliases) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = names.full_name(target)
        if name.startswith("cutlass.") and name.endswith(".kernel"):
            return True
    return False


def _flags(tree: ast.Module, names: _Aliases, library: Library) -> Iterator[Finding]:
    launches = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imports(node)
        elif isinstance(node, ast.Call):
            launches = launches or (isinstance(node.func, ast.Attribute) and node.func.attr == "launch")
            yield from _call(node, names, library)
        elif isinstance(node, ast.Try | ast.TryStar):
            yield _flag(
                "try-except", "try/except may hide that the kernel fails and something else computes", node
            )
        elif isinstance(node, ast.Attribute) and names.full_name(node) == "sys.modules":
            yield _flag("inside-python", "sys.modules reaches into other modules", node)
        elif isinstance(node, ast.Attribute) and node.attr in _TELLING_ATTRIBUTES:
            yield _flag(*_TELLING_ATTRIBUTES[node.attr], node)
        elif isinstance(node, ast.Assign | ast.AugAssign):
            yield from _assigned(node, names)
        elif isinstance(node, ast.FunctionDef) and node.name in {"__torch_function__", "__torch_dispatch__"}:
            yield _flag("tensor-subclass", f"{node.name} may compute only when the output is read", node)
        elif (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.MatMult)
            and LibraryFamily.MATMUL not in library
        ):
            yield _flag("torch-compute", "the @ operator may be PyTorch's matrix product", node)
    if not launches:
        yield Finding(
            kind="no-launch", message="No call of .launch(...) is in the file.", severity=Severity.FLAG
        )


def _imports(node: ast.Import | ast.ImportFrom) -> Iterator[Finding]:
    modules = [item.name for item in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    for module in modules:
        top = module.partition(".")[0]
        if top in _REACHES_INSIDE:
            yield _flag("inside-python", f"it imports {module}, which reaches into the process", node)
        elif top in _REACHES_OUT:
            yield _flag(
                "outside-effect", f"it imports {module}, which reaches files, network or processes", node
            )
        elif top in _THREADS:
            yield _flag("threads", f"it imports {module}; work in another thread may not be timed", node)
        elif top in {"cutegen_nb", "__main__"}:
            yield _flag("harness-import", f"it imports {module}, the harness that judges it", node)
        elif top == "reference" or top.startswith("problem"):
            yield _flag("reference-import", f"it imports {module}, which may be the reference", node)
    if isinstance(node, ast.ImportFrom):
        for item in node.names:
            if item.name in _TELLING_ATTRIBUTES:
                yield _flag(*_TELLING_ATTRIBUTES[item.name], node)


def _assigned(node: ast.Assign | ast.AugAssign, names: _Aliases) -> Iterator[Finding]:
    """Flag assignments to attributes of modules."""
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        name = names.full_name(target) if isinstance(target, ast.Attribute) else ""
        if name.startswith("torch.backends."):
            yield _flag("global-setting", f"{name} changes what PyTorch computes for everybody", node)
        elif name.partition(".")[0] in _PATCHED:
            yield _flag("patched", f"{name} is replaced for everybody, the judge included", node)


def _call(node: ast.Call, names: _Aliases, library: Library) -> Iterator[Finding]:
    name = names.full_name(node.func)
    head, _, last = name.rpartition(".")
    if head in _TORCH_MODULES and last in _COMPUTE and (family_of(last) or last) not in library:
        yield _flag("torch-compute", f"{name} is computed by PyTorch", node)
    elif name in _RUNS_TEXT or name.removeprefix("builtins.") in _RUNS_TEXT:
        yield _flag("runs-text", f"{name}() runs text or imports by name", node)
    elif name == "open" or (head == "os" and last in {"open", "remove", "environ", "putenv"}):
        yield _flag("outside-effect", f"{name}() reaches files or the environment", node)
    elif head == "os" and last in _FORKS:
        yield _flag("outside-effect", f"{name}() starts or ends processes", node)
    elif head == "torch.utils.cpp_extension" or "load_inline" in last:
        yield _flag("inline-code", f"{name} compiles other code than the DSL's", node)
    elif name in {"sys.exit", "exit", "quit"}:
        yield _flag("outside-effect", f"{name}() ends the process", node)


def _capitalised(what: str) -> str:
    """Capitalise a sentence, unless it begins with a name."""
    first = what.split(maxsplit=1)[0]
    return what if "." in first or "(" in first else f"{what[0].upper()}{what[1:]}"


def _flag(kind: str, what: str, node: ast.stmt | ast.expr) -> Finding:
    return Finding(
        kind=kind,
        message=f"{_capitalised(what)} (line {node.lineno}).",
        severity=Severity.FLAG,
        line=node.lineno,
        column=node.col_offset + 1,
    )
