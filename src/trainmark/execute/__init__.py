"""A run: it is planned in rounds, happens in a fresh process, and leaves a record."""
