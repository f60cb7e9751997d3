"""Export to MLflow: one run per record, at the time it was made."""

from __future__ import annotations

import math
from collections.abc import Iterable

from trainmark.record.record import Record
from trainmark.report.export.scalars import facts, points, results, start_of

EXPERIMENT = "trainmark"
"""Name of MLflow's experiment that has the runs."""
_MOST_AT_ONCE = 1000
"""Maximum number of metrics in one request, which MLflow limits."""
_ENDINGS = {"ok": "FINISHED", "interrupted": "KILLED"}


def to_mlflow(records: Iterable[Record], uri: str) -> list[str]:
    """Log each new record to a tracking server or store, and return the ids of the runs.

    Args:
        uri: as ``MLFLOW_TRACKING_URI``: ``http://...``, ``sqlite:///mlflow.db``, or a folder.
    """
    from mlflow import MlflowClient
    from mlflow.entities import Metric, Param

    client = MlflowClient(tracking_uri=uri)
    known = client.get_experiment_by_name(EXPERIMENT)
    place = known.experiment_id if known else client.create_experiment(EXPERIMENT)
    made = []
    for record in records:
        quoted = record.id.replace("'", "")
        if client.search_runs([place], f"attributes.run_name = '{quoted}'", max_results=1):
            continue
        start = start_of(record)
        made_run = client.create_run(place, start_time=_milliseconds(start), run_name=record.id)
        run = made_run.info.run_id
        params = [Param(name, value[:500]) for name, value in facts(record).items()]
        client.log_batch(run, params=params)
        metrics = [
            Metric(point.name, point.value, _milliseconds(start + point.seconds), point.step)
            for point in points(record)
            if math.isfinite(point.value)
        ]
        metrics += [
            Metric(f"final/{name}", value, _milliseconds(start), 0)
            for name, value in results(record).items()
        ]
        for first in range(0, len(metrics), _MOST_AT_ONCE):
            client.log_batch(run, metrics=metrics[first : first + _MOST_AT_ONCE])
        last = max((point.seconds for point in points(record)), default=0.0)
        ending = _ENDINGS.get(record.outcome.status, "FAILED")
        client.set_terminated(run, ending, _milliseconds(start + last))
        made.append(run)
    return made


def _milliseconds(seconds: float) -> int:
    return int(1000 * seconds)
