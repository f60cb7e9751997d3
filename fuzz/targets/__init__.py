"""One file a target: ``one(data)`` lets nothing through but trainmark's errors; ``mutated`` knows its structure."""
