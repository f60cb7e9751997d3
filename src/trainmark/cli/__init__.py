"""The command line: one file a verb, imported on use. Only here do errors become exit codes."""
