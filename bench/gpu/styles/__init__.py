"""How near is trainmark's `fast` to the best loop that anybody can write?

All candidates do the same recorded work: they gather a batch, compute, clip, update and record.
"""
