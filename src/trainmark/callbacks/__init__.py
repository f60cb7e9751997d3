"""The hook for training loops that others wrote: a few lines each, imported by the user's own script alone."""
