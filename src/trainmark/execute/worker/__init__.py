"""What runs in the measured process: the standard library, NumPy and one framework, nothing else."""
