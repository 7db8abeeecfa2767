# SPDX-License-Identifier: MIT
"""cuda_extension.py LIBRARY [FUNCTION] - load libfakeextension.so as Python loads an extension, and
run it."""
import ctypes
import os
import sys

LIBRARY = ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL)
getattr(LIBRARY, sys.argv[2] if len(sys.argv) > 2 else "extension_run")()
