"""Keras 3 on TensorFlow, PyTorch or JAX: ``idiomatic`` is ``model.fit``, ``compiled`` the same with
``jit_compile=True``, ``fast`` a loop of the engine's own.

Only :mod:`~trainmark.backends.keras.backend` may be imported before an engine is chosen; all else imports Keras.
"""
