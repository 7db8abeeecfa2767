# SPDX-License-Identifier: MIT
"""How the memory of a LoRA training grows over a grid of configurations: the same as `python -m tidemark.sweep`.

    python examples/gpu_memory_profiler.py --token YOUR_HF_TOKEN --seq_lengths 128 256 512 --batch_sizes 8 16 32 \\
        --max_physical_batch_sizes 1 2 4 --lora_ranks 8 16 --results_dir ./memory_results --num_steps 5

--help lists all options. Needs torch. For the class GPUMemoryProfiler see examples/example_usage.py.
"""
import os
import sys

os.execv(sys.executable, [sys.executable, "-m", "tidemark.sweep", *sys.argv[1:]])  # which is not recorded itself
