"""A survey: the speed of many workloads, styles and precisions in one process per framework."""
