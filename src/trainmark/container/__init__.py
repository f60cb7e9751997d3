"""Images that hold trainmark: what they are made of, and whoever can build them here.

Data flows one way: flavour + origin → render → folder → engine → build.
"""
