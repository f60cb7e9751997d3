"""JAX: ``idiomatic`` as a jitted step fed from the host, ``fast`` as one scan over a whole epoch on the device."""
