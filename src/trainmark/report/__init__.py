"""HOW IT IS SHOWN: tables as data, and small renderers for them. Knows nothing of measuring."""
