"""The protocols of `talkconv evaluate` by name, and the metrics that each of them has."""

from collections.abc import Sequence

from talkconv.evaluation.bleu import BLEU_PROTOCOLS, bleu_metric
from talkconv.evaluation.metric import Metric
from talkconv.evaluation.rouge import IMPLEMENTATIONS, rouge_metrics

ROUGE_PROTOCOLS = {"rouge": IMPLEMENTATIONS[0], "rouge-score": IMPLEMENTATIONS[1]}
PROTOCOLS = (*BLEU_PROTOCOLS, *ROUGE_PROTOCOLS)
# These expect outputs and references that are raw text.
RAW_PROTOCOLS = ("sacrebleu", "detok", "chrf")


def metrics_of(protocols: Sequence[str], references: Sequence[str]) -> list[Metric]:
    """Return the metrics of these protocols. ROUGE looks at the references to split sentences."""
    metrics: list[Metric] = []
    for protocol in protocols:
        if protocol in ROUGE_PROTOCOLS:
            metrics += rouge_metrics(references, implementation=ROUGE_PROTOCOLS[protocol])
        elif protocol in BLEU_PROTOCOLS:
            metrics.append(bleu_metric(protocol))
        else:
            raise ValueError(f"protocol must be one of {', '.join(PROTOCOLS)}; got {protocol!r}")
    return metrics
