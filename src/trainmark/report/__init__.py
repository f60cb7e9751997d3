"""Presentation: tables as data, and small renderers for them. Independent of measuring."""
