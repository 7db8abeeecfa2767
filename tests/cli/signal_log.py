# SPDX-License-Identifier: MIT
"""A program that takes every signal there is, and says of each what came with it.

    signal_log.py SECONDS

Prints "ready", then "NUMBER CODE VALUE" for each signal (VALUE is that of sigqueue, else 0), and
ends with status 5 after one whose VALUE is 99, or SECONDS after the last one. All 62 signals that
can be blocked are, with the system call itself: the C library keeps 32 and 33 to itself.
"""
import ctypes
import struct
import sys

SYS_SIGPROCMASK, SYS_SIGTIMEDWAIT = {"x86_64": (14, 128), "aarch64": (135, 137)}[
    __import__("platform").machine()]
LAST_VALUE = 99


def main(seconds):
    libc = ctypes.CDLL(None, use_errno=True)
    everything = ctypes.c_uint64(2**64 - 1)
    info = ctypes.create_string_buffer(128)
    limit = struct.pack("qq", seconds, 0)
    libc.syscall(SYS_SIGPROCMASK, 0, ctypes.byref(everything), None, 8)
    print("ready", flush=True)
    while True:
        number = libc.syscall(SYS_SIGTIMEDWAIT, ctypes.byref(everything), info, limit, 8)
        if number < 0:
            return 5
        code, = struct.unpack_from("i", info.raw, 8)
        value = struct.unpack_from("i", info.raw, 24)[0] if code == -1 else 0
        if value == LAST_VALUE:
            return 5
        print(number, code, value, flush=True)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
