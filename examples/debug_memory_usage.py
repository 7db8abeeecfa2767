# SPDX-License-Identifier: MIT
"""Where the memory of a LoRA training goes, from the command line: the same as `python -m tidemark.debug`.

    python examples/debug_memory_usage.py --debug_level model_only --pkg matplotlib --version 3.8.0
    python examples/debug_memory_usage.py --debug_level full --pkg matplotlib --version 3.8.0 --precision fp16
    python examples/debug_memory_usage.py --debug_level custom --pkg matplotlib --version 3.8.0
    python examples/debug_memory_usage.py --debug_level comparison --pkg matplotlib --version 3.8.0

--help lists all options. examples/lora_memory.py shows the same by calls of the package. Needs torch.
"""
import sys

from tidemark.debug import main

sys.exit(main(program="debug_memory_usage.py"))
