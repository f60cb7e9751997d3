"""Keras 3 on TensorFlow, PyTorch or JAX.

``idiomatic`` is ``model.fit``, ``compiled`` is the same with ``jit_compile=True``, and ``fast`` is
a native loop of the engine.

Only :mod:`~trainmark.backends.keras.backend` may be imported before an engine is chosen; all others
import Keras.
"""
