# SPDX-License-Identifier: MIT
"""For targets of tests of stacks: reports a block through the hook that torch would call, and keeps what the
interpreter's own traceback was there."""
import ctypes
import sys

process = ctypes.CDLL(None)
hook = process._ZN3c1025ProfiledCPUMemoryReporter3NewEPvm
hook.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
hook.restype = None
stacks = {}


def site(size):
    """Report a block of `size` bytes and keep the traceback of this very call: innermost first."""
    frame, stack = sys._getframe(), []
    hook(None, 4096 * size, size); stack.append((frame.f_code.co_filename, frame.f_lineno, name_of(frame)))
    frame = frame.f_back
    while frame is not None:
        stack.append((frame.f_code.co_filename, frame.f_lineno, name_of(frame)))
        frame = frame.f_back
    stacks[size] = stack


def name_of(frame):
    return getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
