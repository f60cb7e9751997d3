"""What a framework and Keras on it have in common. Backends don't know each other, so it stands here."""
