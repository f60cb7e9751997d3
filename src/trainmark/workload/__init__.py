"""WHAT is trained: a workload as data, with no framework in it."""
