"""Code of the measured process.

It imports only the standard library, NumPy and one framework.
"""
