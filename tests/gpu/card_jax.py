# SPDX-License-Identifier: MIT
"""A JAX program; its allocator takes a share of the card at once, or, by XLA_PYTHON_CLIENT_PREALLOCATE=false,
what it needs."""
import json
import os
import time

from checks import need_gpu

need_gpu()
import jax
import jax.numpy as jnp

x = [jnp.ones((n, 1024), dtype=jnp.float32) for n in (10, 1000, 20000, 50000)]
total = float(sum(jnp.sum(a) for a in x))
time.sleep(2.5)
stats = jax.devices()[0].memory_stats() or {}
print(json.dumps({"sum": total, **{key: stats[key] for key in
                                   ("pool_bytes", "bytes_in_use", "bytes_limit", "bytes_reserved") if key in stats}}),
      flush=True)
os._exit(0)
