"""Changes that were tried, as a patch of the user's script; needs LibCST."""
