"""What is trained: a workload as data, independent of frameworks."""
