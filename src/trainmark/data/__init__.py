"""Training data: images and labels, all verified by SHA-256.

The parent asks ``locate.locate`` where a dataset is; the child asks ``load.load`` for its arrays.
"""
