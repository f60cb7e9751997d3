"""Progress on a terminal, drawn by rich: what the command line and notebooks show of a study."""
