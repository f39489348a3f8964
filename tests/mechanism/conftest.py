"""Quick compilation for all of the mechanism."""

import pytest
from quick_compilation import compile_quickly

__all__ = ["compile_quickly"]


@pytest.fixture(autouse=True, scope="module")
def _quickly(compile_quickly):
    pass
