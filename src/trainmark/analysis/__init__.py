"""Analysis of records: derived figures, ratios with intervals, verdicts, caveats. Independent of
presentation.
"""
