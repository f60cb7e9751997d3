"""Every backend that fits into one process, held against the float64 oracle.

Keras has a process for each of its engines (``test_conformance_elsewhere.py``); the MXNet plug-in has its own tests.
"""

from __future__ import annotations

import pytest

from trainmark_conformance import BackendConformance
from trainmark_conformance.arithmetic import ArithmeticConformance
from trainmark_conformance.batches import BatchConformance
from trainmark_conformance.chance import ChanceConformance
from trainmark_conformance.stepwise import RecipeConformance
from trainmark_conformance.suite import Suite


class TestNumpy(BackendConformance):
    """In float32; in float64 it is the oracle."""

    backend, precision = "numpy", "fp32"


class TestTorchIdiomatic(BackendConformance):
    backend, threads = "torch", 1


COMPILING = pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")  # inductor's own use


@pytest.mark.slow
@COMPILING
class TestTorchCompiled(BackendConformance):
    """Compiles for every test; :class:`TestTorchCompiledBatches` holds what a compiler could break first."""

    backend, style, threads = "torch", "compiled", 1


@pytest.mark.slow
@COMPILING
class TestTorchCompiledBatches(BatchConformance):
    backend, style, threads = "torch", "compiled", 1


class TestTorchFast(BackendConformance):
    backend, style, threads = "torch", "fast", 1


@pytest.mark.slow
class TestTorchFastSinglePrecision(BackendConformance):
    """By day, ``test_torch_against_oracle.py`` trains in single precision."""

    backend, style, precision, threads = "torch", "fast", "fp32", 1


@pytest.mark.slow
class TestJaxIdiomatic(BackendConformance):
    """Compiles for every test; :class:`TestJaxIdiomaticInBrief` is its part of the day."""

    backend, threads = "jax", 1


class TestJaxIdiomaticInBrief(Suite):
    backend, threads = "jax", 1

    test_everything_of_a_recipe = RecipeConformance.test_everything_of_a_recipe
    test_the_first_five_steps_of_the_catalogue = ArithmeticConformance.test_the_first_five_steps_of_the_catalogue


@pytest.mark.slow
class TestJaxFast(BackendConformance):
    """Compiles for every test, too; :class:`TestJaxFastInBrief` is its part of the day."""

    backend, style, threads = "jax", "fast", 1


class TestJaxFastInBrief(BatchConformance, ChanceConformance, RecipeConformance):
    backend, style, threads = "jax", "fast", 1

    test_the_first_five_steps_of_the_catalogue = ArithmeticConformance.test_the_first_five_steps_of_the_catalogue
