"""Apache MXNet: ``idiomatic`` uses its Module and ``fit``, ``fast`` one bound graph with all data
on the device."""
