# SPDX-License-Identifier: MIT
"""The probe of tests/gpu/check_requested.py, on an allocator that is made as torch's is: a table of functions, and results
that are returned in memory."""
import ctypes
import subprocess

from torch_kit import REPO

ALLOCATOR = """
#include <stddef.h>
#include <stdint.h>
typedef void function(void);
static char memory[4096];
static size_t used;
static void destroy(void) {}
static void allocate(void **ret, void *self, size_t bytes)
{
    (void)self;
    ret[0] = ret[1] = memory + used;
    used += (bytes + 511) / 512 * 512;
}
static function *const table[] = {NULL, NULL, destroy, destroy, (function *)allocate, destroy};
struct allocator { function *const *table; } allocator = {table + 2};
void *take(size_t bytes)
{
    void *data[4];
    ((void (*)(void **, void *, size_t))allocator.table[2])(data, &allocator, bytes);
    return data[0];
}
"""


def test_the_probe(tmp_path):
    (tmp_path / "allocator.c").write_text(ALLOCATOR)
    for source in (tmp_path / "allocator.c", REPO / "tests" / "gpu" / "requested_probe.c"):
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-o", tmp_path / f"{source.stem}.so", source], check=True)
    torch, probe = (ctypes.CDLL(str(tmp_path / name)) for name in ("allocator.so", "requested_probe.so"))
    torch.take.restype = ctypes.c_void_p
    allocator = ctypes.addressof(ctypes.c_uint64.in_dll(torch, "allocator"))
    before = ctypes.c_uint64.from_address(allocator).value
    probe.probe_start.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    torch.take(100)
    assert probe.probe_start(allocator, 4) == 0
    assert probe.probe_start(allocator, 4) == -1  # it is in
    places = [torch.take(size) for size in (1, 512, 513)]
    probe.probe_stop()
    assert ctypes.c_uint64.from_address(allocator).value == before
    torch.take(7)
    address, size, seen = ctypes.c_uint64(), ctypes.c_uint64(), []
    for i in range(probe.probe_get(0, ctypes.byref(address), ctypes.byref(size))):
        probe.probe_get(i, ctypes.byref(address), ctypes.byref(size))
        seen.append((address.value, size.value))
    assert seen == list(zip(places, (1, 512, 513)))
