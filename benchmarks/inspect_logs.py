"""Read exported logs with inspect-ai itself: `python -m benchmarks.inspect_logs logs/*.eval`, where it is installed.

Everything must be readable, sample by sample, and the metrics that inspect-ai recomputes must be those in the file.
"""

from __future__ import annotations

import sys


def check(path: str) -> str:
    from inspect_ai.log import (
        read_eval_log,
        read_eval_log_sample,
        read_eval_log_sample_summaries,
        recompute_metrics,
    )

    log = read_eval_log(path)
    assert log.results is not None and log.samples is not None
    written = {
        (score.name, name): metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }
    recompute_metrics(log)
    computed = {
        (score.name, name): metric.value for score in log.results.scores for name, metric in score.metrics.items()
    }
    worst = max((abs(written[key] - value) for key, value in computed.items()), default=0.0)
    assert worst < 1e-12, f"{path}: {written} became {computed}"
    if path.endswith(".eval"):
        summaries = read_eval_log_sample_summaries(path)
        assert len(summaries) == len(log.samples)
        for summary in summaries:
            read_eval_log_sample(path, id=summary.id, epoch=summary.epoch)
    errors = sum(sample.error is not None for sample in log.samples)
    return f"{path}: {len(log.samples)} samples, {errors} errors, {len(computed)} metrics agree"


if __name__ == "__main__":
    for path in sys.argv[1:]:
        print(check(path))
