"""With what is trained: images and labels, whose every byte is known by its SHA-256.

The parent asks ``locate.locate`` where a dataset is; the child asks ``load.load`` for its arrays.
"""
