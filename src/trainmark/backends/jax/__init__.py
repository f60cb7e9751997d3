"""JAX, with a jitted step fed from the host, or a loop over the steps on the device.

The first is the style ``idiomatic``, the second is ``fast``.
"""
