"""Progress of studies on a terminal, drawn by rich, for the command line and notebooks."""
