"""PyTorch, with the training loop of its tutorials, or everything on the device.

The first is the style ``idiomatic``, the second is ``fast``.
"""
