"""Outputs are flattened without running a candidate's code, and inputs are copied."""

import torch

from cutegen_nb.evaluator.trial.compare import answered, cloned, element_count, plain_leaves, tensors_of


class Lazy(tuple):
    """A tuple that would compute its parts when they are asked for."""

    __slots__ = ()

    def __iter__(self):
        raise AssertionError("the candidate's code ran")


def test_containers_are_flattened_by_their_own_types_alone():
    assert plain_leaves([1, (2, {"a": 3}), "b"]) == [1, 2, 3, "b"]
    assert plain_leaves(Lazy((1, 2))) == [1, 2]


def test_a_list_that_holds_itself_ends():
    loop = [1]
    loop.append(loop)
    assert plain_leaves(loop)[0] == 1


def test_numbers_of_a_reference_become_tensors():
    found = tensors_of((torch.ones(2, requires_grad=True), 3))
    assert [tuple(one.shape) for one in found] == [(2,), ()]
    assert not found[0].requires_grad
    assert element_count(found) == 3


def test_inputs_that_the_reference_writes_into_are_told_and_stay_as_they_were():
    class Writes(torch.nn.Module):
        def forward(self, x, y):
            return x.add_(1) + y

    drawn = [torch.zeros(3), torch.ones(3)]
    outputs, writes = answered(Writes(), drawn)
    assert writes == (True, False)
    assert (outputs[0].tolist(), drawn[0].tolist()) == ([2.0] * 3, [0.0] * 3)
    assert cloned(drawn)[0].data_ptr() != drawn[0].data_ptr()
