"""WHAT IS KEPT: one versioned JSON file a run, raw measurements, never only summaries."""
