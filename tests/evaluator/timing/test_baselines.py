"""What a candidate is timed against is not what the candidate made of it."""

from __future__ import annotations

import torch

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


def test_a_cache_that_cannot_be_used_is_left_out(monkeypatch):
    from torch._inductor import config as inductor

    tried = []

    def compile_once_cached(reference):
        def call(*given):
            tried.append(inductor.force_disable_caches)
            if not inductor.force_disable_caches:
                raise PermissionError(13, "Permission denied", "another worker's file")
            return reference(*given)

        return call

    monkeypatch.setattr(torch, "compile", compile_once_cached)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    call = baselines.compiled(torch.nn.ReLU(), [torch.ones(2)])
    assert tried == [False, True]
    assert not inductor.force_disable_caches
    with inductor.patch(force_disable_caches=True):
        assert call(-torch.ones(2)).tolist() == [0.0, 0.0]


def test_a_reference_that_cannot_be_compiled_is_a_missing_baseline(monkeypatch):
    def refuse(_):
        raise RuntimeError("no kernel for this")

    monkeypatch.setattr(torch, "compile", refuse)
    reference = torch.nn.ReLU()
    calls, (failure,) = baselines.prepare(("eager", "torch.compile"), reference, [torch.ones(2)], {})
    assert calls == {"eager": reference}
    assert failure.message == "Baseline torch.compile could not be made: RuntimeError: no kernel for this"
