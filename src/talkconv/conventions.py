"""Names and numbers that all rooms agree on."""

TRANSLATION = "translation"
SUMMARIZATION = "summarization"
LANGUAGE_MODELLING = "language_modelling"
TASKS = (TRANSLATION, SUMMARIZATION, LANGUAGE_MODELLING)

# The label of tokens that no loss counts, as in transformers and torch.nn.functional.cross_entropy.
IGNORED_LABEL = -100


def check_task(task: str) -> None:
    """Raise a ValueError if no task has this name."""
    if task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(TASKS)}; got {task!r}")
