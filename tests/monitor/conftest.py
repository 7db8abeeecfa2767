# SPDX-License-Identifier: MIT
"""The fixture of monitor_kit.py, for all tests of this folder."""
from monitor_kit import machine_fixture  # noqa: F401
