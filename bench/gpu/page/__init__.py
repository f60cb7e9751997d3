"""The page of results, in Markdown."""
