"""What a candidate is timed against is not what the candidate made of it."""

from __future__ import annotations

from cutegen_nb.evaluator.timing import baselines


def test_how_the_compiler_is_set_up_is_put_back_before_a_baseline_is_compiled():
    from torch._dynamo import config as dynamo
    from torch._inductor import config as inductor

    before = baselines.configuration(("eager", "torch.compile"))
    fusing = inductor.max_fusion_size
    dynamo.disable, inductor.max_fusion_size = True, 1
    (found,) = baselines.restore_compiler_settings(before)
    assert found.kind == "global-setting"
    assert "dynamo.config.disable" in found.message
    assert "inductor.config.max_fusion_size" in found.message
    assert (dynamo.disable, inductor.max_fusion_size) == (False, fusing)
    assert baselines.restore_compiler_settings(before) == ()


def test_without_a_compiled_baseline_no_compiler_is_imported():
    assert baselines.configuration(("eager",)) == {}
    assert baselines.restore_compiler_settings({}) == ()
