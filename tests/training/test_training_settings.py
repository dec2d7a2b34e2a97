import pytest

from talkconv.training.training_settings import TrainingSettings


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (dict(tokens=0), "training.tokens must be above 0, got 0"),
        (dict(learning_rate=0.0), "training.learning_rate must be above 0, got 0.0"),
        (dict(clip=-1.0), "training.clip must be at least 0, got -1.0"),
        (dict(patience=0), "training.patience must be at least 1, or left out, got 0"),
        (dict(betas=(0.9, 1.0)), r"training.betas must be in \[0, 1\), got \(0.9, 1.0\)"),
        (dict(schedule="cosine", warmup_steps=10, max_steps=10), "must be below max_steps"),
        (dict(fsdp=True, validate_by="bleu"), "validate_by must be 'loss', got 'bleu'"),
    ],
)
def test_impossible_settings_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        TrainingSettings(**change)
