# SPDX-License-Identifier: MIT
"""A LoRA training with GPUMemoryProfiler: what is allocated at each of its moments.

    python3 examples/example_usage.py [LOG_DIR]

Runs on the GPU if there is one, else on the CPU. Needs torch.
"""
import argparse
import tempfile

import torch

from tidemark import GPUMemoryProfiler

RANK, HIDDEN, BATCH, N_EPOCHS, N_BATCHES = 8, 1024, 256, 2, 3


def train(profiler: GPUMemoryProfiler, device: str) -> None:
    profiler.record("training begins")
    frozen = torch.nn.Linear(HIDDEN, HIDDEN, device=device).requires_grad_(False)
    lora_a = torch.randn(RANK, HIDDEN, device=device, requires_grad=True)
    lora_b = torch.zeros(HIDDEN, RANK, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([lora_a, lora_b])
    profiler.record_detailed("model made", tensor_info={"lora_A": lora_a, "lora_B": lora_b}, model_info=frozen)
    for epoch in range(N_EPOCHS):
        profiler.record(f"epoch {epoch + 1} begins")
        for _ in range(N_BATCHES):
            batch = torch.randn(BATCH, HIDDEN, device=device)
            loss = (frozen(batch) + batch @ lora_a.T @ lora_b.T).square().mean()
            profiler.record("forward", f"loss={loss.item():.4f}")
            loss.backward()
            profiler.record("backward")
            optimizer.step()
            optimizer.zero_grad()
            profiler.record("optimizer step")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log_dir", nargs="?", metavar="LOG_DIR", help="folder of log and JSON (a temporary one)")
    profiler = GPUMemoryProfiler(log_dir=parser.parse_args().log_dir or tempfile.mkdtemp(prefix="profile-"))
    train(profiler, "cuda" if torch.cuda.is_available() else "cpu")
    profiler.print_report()
    profiler.generate_summary_report()
    print("written:", profiler.save_to_json(), profiler.log_file)
    profiler.cleanup()


main()
