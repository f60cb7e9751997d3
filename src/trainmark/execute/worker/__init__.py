"""Code of the measured process, which imports only the standard library, NumPy and one
framework.
"""
