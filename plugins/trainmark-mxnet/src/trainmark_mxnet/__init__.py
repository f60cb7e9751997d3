"""Apache MXNet: ``idiomatic`` with its Module and ``fit``, ``fast`` with one bound graph and everything resident."""
