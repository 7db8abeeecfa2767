# SPDX-License-Identifier: MIT
"""The fixtures of driver_kit.py, for all tests of this folder."""
from driver_kit import fixture_cards, watch  # noqa: F401
