"""The offline author's recurrent layers, against PyTorch on the simulator."""

import pytest

pytestmark = pytest.mark.slow

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width, units):
        super().__init__()
        self.layer = nn.{layer}
        self.fc = nn.Linear(units, 3)

    def forward(self, {names}):
        {forward}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{width}, {units}]
"""
SIZES = {"layers": 1, "width": 5, "units": 7, "steps": 4, "batch": 3}


def layer(text, forward, *, states=0, first=False, more="", **sizes):
    """A problem with one recurrent layer of `text`; `states` are given to it, and `layers` counts directions."""
    layers, width, units, steps, batch = (SIZES | sizes).values()
    shape = f"{batch}, {steps}, {width}" if first else f"{steps}, {batch}, {width}"
    given = [f"torch.randn({shape}){more}", *[f"torch.randn({layers}, {batch}, {units}){more}"] * states]
    return SOURCE.format(
        layer=text, names=", ".join("xhc"[: 1 + states]), forward=forward, inputs=", ".join(given), width=width,
        units=units,
    )  # fmt: skip


STRATEGIES = ["weights-on-chip", "prefetch-step", "asynchronous-states"]
OUTPUT = "return self.layer(x)[0]"
LAYERS = {
    "lstm": layer("LSTM(width, units)", OUTPUT),
    "lstm, all states": layer(
        "LSTM(width, units, 2)",
        "out, (h, c) = self.layer(x, (h, c)); return out, h, c",
        states=2, layers=2, units=8,
    ),
    "lstm, last step": layer(
        "LSTM(width, units, 2, batch_first=True)",
        "out, state = self.layer(x, (h, c)); return self.fc(out[:, -1, :])",
        states=2, layers=2, units=8, first=True,
    ),
    "lstm, last state of the cells": layer(
        "LSTM(width, units, 2, batch_first=True)",
        "return self.layer(x, (h, c))[1][1]",
        states=2, layers=2, units=8, first=True,
    ),
    "lstm, both directions": layer(
        "LSTM(width, units, 2, batch_first=True, bidirectional=True)",
        "out, (h, c) = self.layer(x, (h, c)); return out, h, c",
        states=2, layers=4, first=True,
    ),
    "gru": layer("GRU(width, units, 2)", "return self.layer(x, h)[0]", states=1, layers=2),
    "gru, last state": layer(
        "GRU(width, units, 2, bias=False)", "return self.layer(x, h)[1]", states=1, layers=2, units=33, steps=2
    ),
    "gru, both directions": layer(
        "GRU(width, units, 2, bidirectional=True)", "return self.layer(x, h)", states=1, layers=4, steps=3
    ),
    "rnn": layer("RNN(width, units)", OUTPUT, units=40, batch=2),
    "rnn with relu": layer(
        "RNN(width, units, nonlinearity='relu', batch_first=True)", "return self.layer(x)[1]", first=True
    ),
    "two lstms of other widths": layer(
        "LSTM(width, units, batch_first=True); self.more = nn.LSTM(units, 2 * units)",
        "return self.more(torch.tanh(self.layer(x)[0]))[0]",
    ),
    "lstm in half precision": layer(
        "LSTM(width, units).half()", OUTPUT, more=".half()", units=16, width=8
    ),
    "more units than a cta takes at a time": layer("RNN(width, units)", OUTPUT, units=133, batch=2, steps=2),
    "many rows of the batch": layer("LSTM(width, units)", OUTPUT, units=32, batch=37, steps=2),
}  # fmt: skip


@pytest.mark.every(test=18, long=3)
@pytest.mark.parametrize("name", LAYERS)
def test_the_first_kernel_is_right(offline_simulator, name):
    answer = offline_simulator.ask(name, LAYERS[name], steps=[0])
    assert [entry["verdict"] for entry in answer.get("revisions", [])] == ["right"], answer


STEPS = [
    (name, last)
    for at, name in enumerate(LAYERS)
    for last in STRATEGIES
    if last == STRATEGIES[-1] or not at % 3
]
"""Each layer with all steps, and every third with some of them."""


@pytest.mark.long
@pytest.mark.every(long=5)
@pytest.mark.parametrize(("name", "last"), STEPS)
def test_weights_in_the_registers_of_a_cluster_are_right(hopper_simulator, name, last):
    steps = STRATEGIES[: STRATEGIES.index(last) + 1]
    answer = hopper_simulator.ask(name, LAYERS[name], applied=steps)
    assert [entry["verdict"] for entry in answer.get("revisions", [])] == ["right"], answer
