"""Studies: questions that planned runs answer."""
