"""The command line: one file per verb, imported on use.

Only this package turns errors into exit codes.
"""
