"""Code shared by a framework and Keras on it, since backends don't import each other."""
