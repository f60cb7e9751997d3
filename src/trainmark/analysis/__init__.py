"""WHAT IT MEANS: figures derived from records, ratios with intervals, verdicts, caveats. Knows nothing of printing."""
