"""Fixtures of the training tests."""

import functools
import gc

import pytest
from small_models import save_word_model, small_plan, small_run


@pytest.fixture(autouse=True)
def frozen():
    """Leave all that is imported out of the collection that accelerate makes in each training run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def word_model(tmp_path_factory):
    """Path of a 2-layer Llama of 16 dimensions that knows the items' words."""
    return save_word_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def planned(word_model):
    """`small_plan` of the word model."""
    return functools.partial(small_plan, word_model)


@pytest.fixture(scope="session")
def trained(word_model):
    """`small_run` of the word model."""
    return functools.partial(small_run, word_model)


@pytest.fixture(scope="session")
def study():
    """The modules of the study by name."""
    from studied import modules

    return modules()


@pytest.fixture(scope="session")
def base():
    """The built-in judge, untrained."""
    from studied import untrained

    return untrained()
