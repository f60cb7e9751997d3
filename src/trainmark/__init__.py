"""trainmark: is the GPU worth it, does it learn the same thing, and if it is slow, why?

This file imports nothing: the measured process shares it, and there only the standard library, NumPy and one
framework may be loaded.
"""

__version__ = "0.1.0"
