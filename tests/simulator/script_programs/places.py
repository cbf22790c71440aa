# ruff: noqa: T201 - it prints, as programs do
"""Memory spaces of tensors as the DSL sees them: only some are the host's."""

import torch
from cutlass.cute.runtime import from_dlpack


def place(tensor):
    return str(from_dlpack(tensor).memspace).rpartition(".")[2]


model = torch.nn.Linear(3, 3).cuda()
print("host", place(torch.randn(4)), place(torch.zeros(4, device="cpu")))
moved = (torch.zeros(4).cuda(), torch.ones(4).to("cuda"), torch.ones(4).to(torch.zeros(1, device="cuda")))
made = (torch.randn(4, device="cuda"), torch.empty(4, device=0), torch.ones(4, device="cuda") + 1)
print("moved", *map(place, moved), place(model.weight.detach()))
print("made", *map(place, made))
with torch.device("cuda"):
    print("with", place(torch.zeros(3)))
torch.set_default_device("cuda")
print("default", place(torch.zeros(3)))
