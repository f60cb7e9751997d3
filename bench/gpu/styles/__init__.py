"""How near is trainmark's `fast` to the best known loop?

All candidates do the same recorded work: they gather a batch, compute, clip, update and record.
"""
