"""Analysis of records: derived figures, ratios with intervals, verdicts and caveats."""
