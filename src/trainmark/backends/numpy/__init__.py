"""The reference: plain NumPy.

It has float32 for use, and float64 as the oracle for every other backend.
"""
