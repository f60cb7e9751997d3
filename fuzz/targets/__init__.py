"""One module per target: ``one(data)`` catches only trainmark's errors; ``mutated`` mutates
structured input."""
