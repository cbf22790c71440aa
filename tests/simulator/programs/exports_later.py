"""Loads a function that another program exported, and calls it."""

import torch
from cutlass.cute.runtime import load_module

from cutegen_nb.simulator.host.runtime import UnansweredCall


def check(simulation, path, kind, _=""):
    x, y = torch.randn(64, device="cuda"), torch.zeros(64, device="cuda")
    try:
        load_module(path, enable_tvm_ffi=kind == "with").triple(x, y)
    except UnansweredCall as refused:
        return {"refused": str(refused)}
    return {"right": torch.equal(y, 3 * x), "launches": len(simulation.launches)}
