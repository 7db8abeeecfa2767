# SPDX-License-Identifier: MIT
"""A notebook without its page: a real Jupyter kernel runs cells."""
import sys

from jupyter_client.manager import KernelManager

CELLS = ["import torch\nkept = []",
         "def keep(n):\n    for _ in range(n):\n        kept.append(torch.ones(1 << 18))",
         "keep(3)",
         "kept.append(torch.ones(1 << 20))",
         "keep(2)\nkept.append(torch.ones(1 << 19))"]

manager = KernelManager(kernel_name="python3")
manager.kernel_spec.argv[0] = sys.executable
manager.start_kernel()
client = manager.blocking_client()
client.start_channels()
client.wait_for_ready(timeout=60)
for cell in CELLS:
    reply = client.execute_interactive(cell, timeout=60)
    assert reply["content"]["status"] == "ok", reply["content"]
client.stop_channels()
manager.shutdown_kernel()
