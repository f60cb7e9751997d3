"""A trainmark backend written from scratch: multilayer perceptrons on NumPy, in float32."""
