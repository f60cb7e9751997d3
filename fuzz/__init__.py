"""Coverage-guided fuzzing of everything that reads untrusted input (see README.md)."""
