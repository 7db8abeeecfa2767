# SPDX-License-Identifier: MIT
"""cuda_extension.py LIBRARY - load libfakeextension.so as Python loads an extension, and run it."""
import ctypes
import os
import sys

ctypes.CDLL(sys.argv[1], mode=os.RTLD_NOW | os.RTLD_LOCAL).extension_run()
