"""What is observed from outside a run."""
