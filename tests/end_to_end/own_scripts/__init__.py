"""Scripts as users have them; none knows of an observer."""
