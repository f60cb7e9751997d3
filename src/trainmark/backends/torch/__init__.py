"""PyTorch: ``idiomatic`` is the training loop of its tutorials, ``fast`` keeps everything on the
device.
"""
