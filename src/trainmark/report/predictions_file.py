"""All probabilities as a CSV or Parquet file."""

from __future__ import annotations

import csv
import io

from trainmark.analysis.predictions import Predictions


def predictions_file(found: Predictions, ending: str) -> bytes:
    """Return a file with one row per example: label, prediction and all probabilities.

    Args:
        ending: ``.csv``, or ``.parquet``, which needs polars.
    """
    columns = {
        "index": list(range(len(found.labels))),
        "label": found.labels.tolist(),
        "predicted": found.predicted.tolist(),
        "right": found.right.tolist(),
        **{f"p{each}": found.probabilities[:, each].tolist() for each in range(found.classes)},
    }
    if ending == ".parquet":
        import polars

        target = io.BytesIO()
        polars.DataFrame(columns).write_parquet(target)
        return target.getvalue()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue().encode()
