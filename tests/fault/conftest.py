# SPDX-License-Identifier: MIT
"""The fixtures of fault_kit.py, for all tests of this folder."""
from fault_kit import watch, many_watches  # noqa: F401
