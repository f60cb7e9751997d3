"""Every backend that fits into one process is compared with the float64 oracle.

Keras has a process for each of its engines (``test_conformance_elsewhere.py``); the MXNet plug-in
has its own tests.
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

    backend = "numpy"
    precision = "fp32"


class TestTorchIdiomatic(BackendConformance):
    backend = "torch"
    threads = 1


# this is inductor's own use
COMPILING = pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")


@pytest.mark.slow
@COMPILING
class TestTorchCompiled(BackendConformance):
    """It compiles for every test; :class:`TestTorchCompiledBatches` has what a compiler could break
    first."""

    backend = "torch"
    style = "compiled"
    threads = 1


@pytest.mark.slow
@COMPILING
class TestTorchCompiledBatches(BatchConformance):
    backend = "torch"
    style = "compiled"
    threads = 1


class TestTorchFast(BackendConformance):
    backend = "torch"
    style = "fast"
    threads = 1


@pytest.mark.slow
class TestTorchFastSinglePrecision(BackendConformance):
    """The daily tests leave this out: ``test_torch_against_oracle.py`` trains in single
    precision."""

    backend = "torch"
    style = "fast"
    precision = "fp32"
    threads = 1


@pytest.mark.slow
class TestJaxIdiomatic(BackendConformance):
    """It compiles for every test; :class:`TestJaxIdiomaticInBrief` runs daily instead."""

    backend = "jax"
    threads = 1


class TestJaxIdiomaticInBrief(Suite):
    """:class:`TestJaxFastInBrief` trains the catalogue, with the same layers."""

    backend = "jax"
    threads = 1

    test_everything_of_a_recipe = RecipeConformance.test_everything_of_a_recipe


@pytest.mark.slow
class TestJaxFast(BackendConformance):
    """It compiles for every test, too; :class:`TestJaxFastInBrief` runs daily instead."""

    backend = "jax"
    style = "fast"
    threads = 1


class TestJaxFastInBrief(BatchConformance, ChanceConformance, RecipeConformance):
    backend = "jax"
    style = "fast"
    threads = 1

    test_the_first_five_steps_of_the_catalogue = (
        ArithmeticConformance.test_the_first_five_steps_of_the_catalogue
    )
