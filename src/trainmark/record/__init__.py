"""Records: one versioned JSON file per run, with raw measurements, never only summaries."""
