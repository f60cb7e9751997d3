"""JAX: ``idiomatic`` is a jitted step fed from the host, ``fast`` is a loop over the steps on the
device.
"""
