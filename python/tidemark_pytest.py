# SPDX-License-Identifier: MIT
"""What pytest finds when tidemark is installed: budgets of memory, for tests that ask for one.

pytest loads this in every run of every project of that Python. So it is no part of the package, whose import begins to
record: the real plugin, tidemark.pytest_plugin, comes when a test is collected that has its marker or one of its
fixtures, and nothing of tidemark before. Tests that `import tidemark` themselves find it as anywhere.
"""
import os

MARKER = "limit_gpu_memory"
FIXTURES = {"gpu_memory", "limit_gpu_memory"}
PLUGIN = "tidemark.pytest_plugin"


def is_off():
    """True: the user wants nothing of tidemark."""
    return os.environ.get("TIDEMARK") == "0"


def pytest_configure(config):
    config.addinivalue_line("markers", f'{MARKER}(size): fail the test when torch allocates more on a GPU '
                                       '(without one: on the CPU) than "2 GiB" at any moment of it')


def pytest_report_header():
    return "tidemark: TIDEMARK=0, so budgets of GPU memory are not checked" if is_off() else None


def pytest_itemcollected(item):
    if item.get_closest_marker(MARKER) is not None or FIXTURES.intersection(getattr(item, "fixturenames", ())):
        item.config.pluginmanager.import_plugin(PLUGIN)
