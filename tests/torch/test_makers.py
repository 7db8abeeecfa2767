# SPDX-License-Identifier: MIT
"""What blocks are that only the functions that made them tell: docs/owners.md, Category."""
import subprocess
import sys
from pathlib import Path

from torch_kit import TIDEMARK, environment, query

TORCH = "/usr/lib/python3/dist-packages/torch"
MODULE, DDP = f"{TORCH}/nn/modules/module.py", f"{TORCH}/nn/parallel/distributed.py"
FSDP = f"{TORCH}/distributed/fsdp"
HF = "/site-packages/transformers"
# Frames, innermost first, and the block's category and module.
CASES = [
    (f"{MODULE}:convert,{MODULE}:_apply,{MODULE}:half", "parameter", ""),
    (f"{TORCH}/nn/modules/linear.py:__init__", "parameter", ""),
    (f"{TORCH}/nn/init.py:orthogonal_,{TORCH}/nn/modules/linear.py:__init__", "unknown", ""),
    (f"{TORCH}/nn/parameter.py:__deepcopy__", "parameter", ""),
    (f"{DDP}:_ddp_init_helper,{DDP}:__init__", "gradient", ""),
    (f"{TORCH}/nn/parallel/scatter_gather.py:scatter,{DDP}:forward", "unknown", ""),
    (f"{FSDP}/_flat_param.py:flatten_tensors,{FSDP}/_flat_param.py:__init__", "parameter", ""),
    (f"{TORCH}/distributed/utils.py:_alloc_storage,{FSDP}/_flat_param.py:unshard", "parameter", ""),
    (f"{FSDP}/_fully_shard/_fsdp_param.py:init_all_gather_outputs", "parameter", ""),
    (f"{FSDP}/_runtime_utils.py:_reduce_grad", "unknown", ""),
    (f"{TORCH}/random.py:get_rng_state,{TORCH}/utils/checkpoint.py:forward", "other", "(RNG state)"),
    (f"{TORCH}/cuda/random.py:get_rng_state", "other", "(RNG state)"),
    (f"{TORCH}/random.py:fork_rng", "unknown", ""),
    (f"{HF}/cache_utils.py:update,{HF}/models/gpt2/modeling_gpt2.py:forward", "kv_cache", ""),
    ("/home/me/cache_utils.py:update", "unknown", ""),
]


def test_makers(tmp_path, rings):
    where = tmp_path / "a.tmk"
    target = str(Path(__file__).parent / "makers_target.py")
    done = subprocess.run([TIDEMARK, "run", "--quiet", "-o", str(where), "--", sys.executable, target,
                           *(frames for frames, _, _ in CASES)], env=environment(TIDEMARK_RING_DIR=str(rings)),
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found = query(where, "SELECT size, category, module FROM allocations WHERE size >= 100 ORDER BY size")
    assert found == [[str(100 + i), category, module] for i, (_, category, module) in enumerate(CASES)]
    by_module = dict(query(where, "SELECT category, sum(size) FROM allocations WHERE size >= 100 GROUP BY 1"))
    assert set(by_module) == {"parameter", "gradient", "other", "kv_cache", "unknown"}
