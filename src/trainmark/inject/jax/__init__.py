"""What is observed of JAX."""

from __future__ import annotations

from .steps import install

__all__ = ["install"]
