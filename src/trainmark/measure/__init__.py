"""WHAT IS SEEN from outside a run."""
