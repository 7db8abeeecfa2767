# SPDX-License-Identifier: MIT
"""libtidemark.so from Python: where it is, and its functions.

Under `tidemark run` and after `tidemark attach` the library is in the process already; alone we
load it ourselves, into the global scope, so that torch, when it is imported later, finds our hooks
by name. Nothing here is called for a block: those go from torch to the library directly.
"""
import ctypes
import os
import shutil
import sys
import tempfile
import time

STAGE, MODULE, USER = 1, 2, 3

_folder = os.path.dirname(os.path.abspath(__file__))
_candidates = (
    os.environ.get("TIDEMARK_LIBRARY", ""),
    os.path.join(_folder, "libtidemark.so"),
    os.path.join(_folder, "..", "..", "build", "libtidemark.so"),  # a source tree
    os.path.join(_folder, "..", "..", "libtidemark.so"),           # PREFIX/lib/tidemark/python
    os.path.join(_folder, "..", "..", "..", "libtidemark.so"),
    os.path.join(sys.prefix, "lib", "libtidemark.so"),
    "/usr/local/lib/libtidemark.so",
    "/usr/lib/libtidemark.so",
)


def loaded():
    """The library as it is in this process already, in the global scope, or None: preloaded, or put
    there by `tidemark attach`, from wherever."""
    process = ctypes.CDLL(None)
    return process if hasattr(process, "tidemark_attach") else None


def find():
    """Path of the library; ImportError says where it was looked for."""
    for candidate in _candidates:
        if candidate and os.path.exists(candidate):
            return os.path.realpath(candidate)
    raise ImportError("libtidemark.so is not found; build it (./dev build) or set TIDEMARK_LIBRARY "
                      "to its path. Looked at: " + ", ".join(filter(None, _candidates)))


def program():
    """Path of the program `tidemark`, or None."""
    for candidate in (os.environ.get("TIDEMARK_PROGRAM", ""),
                      os.path.join(_folder, "tidemark"),
                      os.path.join(_folder, "..", "..", "build", "tidemark"),
                      os.path.join(_folder, "..", "..", "..", "bin", "tidemark"),
                      os.path.join(_folder, "..", "..", "..", "..", "bin", "tidemark")):
        if candidate and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.realpath(candidate)
    return shutil.which("tidemark")


def open_library():
    lib = loaded() or ctypes.CDLL(find(), mode=ctypes.RTLD_GLOBAL)
    text, number = ctypes.c_char_p, ctypes.c_uint
    for name, arguments in {
            "push": [number, text], "pop": [number], "step": [ctypes.c_int64],
            "mark": [text, text], "tag": [number, ctypes.c_void_p, number, text]}.items():
        function = getattr(lib, "tidemark_record_" + name)
        function.argtypes, function.restype = arguments, None
    lib.tidemark_record_on.argtypes = []
    lib.tidemark_attach.argtypes = [text, text, ctypes.c_size_t]
    # With Python's lock held, which CDLL gives up and PyDLL does not.
    lib.watch = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(("tidemark_watch", lib))
    lib.tally = ctypes.PYFUNCTYPE(ctypes.py_object)(("tidemark_record_tally_function", lib))()
    lib.tidemark_record_want_tally()  # from now on: of blocks that were there before nobody says the size
    lib.tidemark_record_host_memory.argtypes = [ctypes.POINTER(ctypes.c_uint64)]
    lib.tidemark_record_begin_window.argtypes, lib.tidemark_record_begin_window.restype = [number], None
    lib.tidemark_record_window.argtypes = [number, ctypes.POINTER(ctypes.c_uint64)]
    return lib


def module_looked_for():
    """The module of `python -m MODULE` while Python looks for it, which is when it imports the packages
    above it; else None. It stands before the program's own arguments: `-m MODULE` or `-BmMODULE`."""
    if not sys.argv or sys.argv[0] != "-m":
        return None
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = os.fsdecode(file.read()).split("\0")[:-1]
    except OSError:
        return None
    word = words[-len(sys.argv)] if len(words) > len(sys.argv) else ""
    return word.partition("m")[2] if word.startswith("-") else word or None


def program_name():
    """What the user would call this program: its module or its script."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return spec.name[:-len(".__main__")] if spec.name.endswith(".__main__") else spec.name
    script = os.path.basename(sys.argv[0]) if sys.argv else ""
    return module_looked_for() or ("python" if script in ("", "-c", "-m") else script)


def is_imported_for(module):
    """True while Python imports this package on its way to that module of it."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>" and \
                frame.f_locals.get("name") == module:
            return True
        frame = frame.f_back
    return False


def run_folder():
    """A name for a run that nobody has named, as `tidemark run` makes it. Tests leave nothing behind:
    their plugin's is a temporary folder."""
    if is_imported_for("tidemark.pytest_plugin"):
        return os.path.join(tempfile.mkdtemp(prefix="tidemark-pytest-"), "pytest.tmk")
    base = "".join(c if c.isalnum() or c in "._-+" else "_" for c in program_name())
    name = f"{base}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder = os.path.abspath(name + ".tmk")
    serial = 2
    while os.path.lexists(folder):
        folder = os.path.abspath(f"{name}-{serial}.tmk")
        serial += 1
    return folder


SETTINGS = {"TIDEMARK_MAX_SIZE": "max_size", "TIDEMARK_CPU_TENSORS": "cpu_tensors",
            "TIDEMARK_NATIVE": "native", "TIDEMARK_NO_STACKS": "no_stacks",
            "TIDEMARK_NO_MODULES": "no_modules", "TIDEMARK_NO_CATEGORIES": "no_categories"}


def begin(lib, folder):
    """Begin to record in this process, as the environment says; RuntimeError with the library's
    reason."""
    options = f"run={folder}\n"
    for variable, option in SETTINGS.items():
        value = os.environ.get(variable, "")
        if value not in ("", "0"):
            options += f"{option}={value}\n"
    message = ctypes.create_string_buffer(1024)
    if lib.tidemark_attach(os.fsencode(options), message, len(message)) != 0:
        raise RuntimeError("tidemark: " + message.value.decode(errors="replace"))
