"""The conformance of the one backend that ``CONFORMING_BACKEND`` names, in whichever interpreter
runs this file.

It needs NumPy, pytest and the framework, so it runs where trainmark is not installed:

    CONFORMING_BACKEND=torch PYTHONPATH=src:plugins/trainmark-conformance/src \
        other-env/bin/python -m pytest -c /dev/null --noconftest tests/backends/one_backend.py
"""

from __future__ import annotations

import os

from trainmark_conformance import BackendConformance
from trainmark_conformance.batches import BatchConformance
from trainmark_conformance.stepwise import RecipeConformance

BACKEND = os.environ.get("CONFORMING_BACKEND", "numpy")


class TestIdiomatic(BackendConformance):
    backend = BACKEND
    threads = 1


class TestFastBatches(BatchConformance):
    """Tests of what a compiled loop could break first."""

    backend = BACKEND
    style = "fast"
    threads = 1


class TestFastRecipes(RecipeConformance):
    """Tests of today's networks; a few trainings."""

    backend = BACKEND
    style = "fast"
    threads = 1


class TestIdiomaticRecipes(RecipeConformance):
    backend = BACKEND
    threads = 1


class TestFast(BackendConformance):
    backend = BACKEND
    style = "fast"
    threads = 1
