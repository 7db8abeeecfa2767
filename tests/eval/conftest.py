# SPDX-License-Identifier: MIT
"""The fixture of these tests: see eval_kit.py."""
import pytest
from eval_kit import Workshop


@pytest.fixture
def shop(tmp_path):
    workshop = Workshop(tmp_path)
    yield workshop
    workshop.close()
