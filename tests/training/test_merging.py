"""An adapter merged for a transfer and taken out again leaves no trace in the base."""

import pytest


@pytest.fixture
def model():
    import torch
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    base = torch.nn.Sequential(torch.nn.Linear(64, 64, bias=True), torch.nn.Linear(64, 8))
    model = get_peft_model(
        base.to(torch.bfloat16), LoraConfig(r=4, lora_alpha=8, target_modules=["0", "1"])
    )
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.01)
    return model


def base_weights(model):
    return {name: w.detach().clone() for name, w in model.named_parameters() if "lora_" not in name}


def test_the_base_is_what_it_was_bit_for_bit(model):
    from unswayed.training.trl_hooks import merge_without_trace

    before = base_weights(model)
    model.merge_adapter()
    merged = base_weights(model)
    model.unmerge_adapter()
    drifted = base_weights(model)
    # peft's own way: the case that this module is for.
    assert any(not before[name].equal(drifted[name]) for name in before)
    for name, weight in model.named_parameters():
        if name in before:
            weight.data.copy_(before[name])

    merge_without_trace(model)
    for _ in range(3):
        model.merge_adapter()
        assert all(merged[name].equal(weight) for name, weight in base_weights(model).items())
        model.unmerge_adapter()
        assert all(before[name].equal(weight) for name, weight in base_weights(model).items())
