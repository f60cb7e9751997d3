"""PyTorch: ``idiomatic`` as its tutorials write a training loop, ``fast`` with everything resident on the device."""
