# SPDX-License-Identifier: MIT
"""The same by module and operation: `python -m tidemark.sweep --detailed`.

    python examples/detailed_memory_profiler.py --token YOUR_HF_TOKEN --seq_lengths 128 256 --batch_sizes 8 16 \\
        --max_physical_batch_sizes 1 2 --results_dir ./detailed_results --num_steps 3

--help lists all options. Needs torch.
"""
import os
import sys

os.execv(sys.executable, [sys.executable, "-m", "tidemark.sweep", "--detailed", *sys.argv[1:]])  # as gpu_memory_profiler.py
