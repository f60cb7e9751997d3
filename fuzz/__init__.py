"""Coverage-guided fuzzing of everything that reads what a stranger may have written (see README.md)."""
