"""Code of trainmark's own process: plans runs, starts measured processes, listens to them, and
writes records.
"""
