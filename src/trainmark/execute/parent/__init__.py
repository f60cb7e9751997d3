"""Code of trainmark's own process.

It plans runs, starts measured processes, listens to them, and writes records.
"""
