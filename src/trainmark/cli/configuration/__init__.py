"""Defaults of options from a file.

It is ``trainmark.toml``, or ``[tool.trainmark]`` in ``pyproject.toml``. The nearest of this folder
and those above it holds, up to the root of the repository or the home folder. A key is an option
without its dashes and holds for every verb that has the option; a table named after a verb holds
for that verb alone. What is typed wins, then an environment variable ``TRAINMARK_OPTION``, then the
file.

A file may come from anyone: with a clone, an archive, or a shared folder. One that another user
owns or can write is ignored, and options that could do harm count only in a trusted folder.
"""
