# SPDX-License-Identifier: MIT
import tempfile
from pathlib import Path

import pytest


@pytest.fixture(name="place")
def place_fixture():
    """A folder that every user can enter; pytest closes its own for others, at each start."""
    with tempfile.TemporaryDirectory(prefix="tidemark-fleet-") as name:
        Path(name).chmod(0o755)
        yield Path(name)
