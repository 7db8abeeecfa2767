# SPDX-License-Identifier: MIT
"""libtidemark.so from Python: where it is, and its functions.

Under `tidemark run` and after `tidemark attach` the library is in the process already; alone we
load it ourselves, into the global scope, so that torch, when it is imported later, finds our hooks
by name. Nothing here is called for a block: those go from torch to the library directly.
"""
import ctypes
import itertools
import os
import subprocess
import sys
import tempfile
import time
from typing import Callable, Optional, Sequence

from ._words import log

STAGE, MODULE, USER = 1, 2, 3

_folder = os.path.dirname(os.path.abspath(__file__))
#: Where programs and library may lie, as seen from here.
_PLACES = (
    ("bin", "lib"),                  # installed by pip: in the package itself
    ("../../build", "../../build"),  # a source tree: ./dev build
    ("../../../../bin", "../../.."), # PREFIX/lib/tidemark/python: ./dev install, or an unpacked archive
)
_SYSTEM = (os.path.join(sys.prefix, "lib"), "/usr/local/lib", "/usr/lib")


class NotFound(ImportError, RuntimeError):
    """A part of tidemark that should have come with the package; the text says what to do."""


class OtherVersion(NotFound):
    """The library is there, but not this package's: it may record all the same."""


def loaded() -> Optional[ctypes.CDLL]:
    """The library as it is in this process already, in the global scope, or None: preloaded, or put
    there by `tidemark attach`, from wherever."""
    process = ctypes.CDLL(None)
    return process if hasattr(process, "tidemark_attach") else None


def _named_by(variables: Sequence[str], is_it: Callable[[str], bool]) -> Optional[str]:
    """What the environment names, else None; NotFound if that is nothing of the kind."""
    for variable in variables:
        path = os.environ.get(variable)
        if path and not is_it(path):
            raise NotFound(f"{variable} says {path}, but there is no such file; set it to the right path, or not at all")
        if path:
            return os.path.realpath(path)
    return None


def _first(name: str, variable: str, folders: Sequence[str], is_it: Callable[[str], bool]) -> str:
    looked = [os.path.normpath(os.path.join(_folder, folder, name)) for folder in folders]
    for path in looked:
        if is_it(path):
            return os.path.realpath(path)
    raise NotFound(f"{name} is not found. In a source tree run ./dev build, or install the package again: pip install . "
                   f"there, or pip install the wheel; or set {variable} to its path. Looked at: {', '.join(looked)}")


def _is_compiled(path: str) -> bool:
    """Is it a program, and not a script? One of that name is pip's, which would come back here."""
    try:
        with open(path, "rb") as file:
            return os.access(path, os.X_OK) and file.read(4) == b"\x7fELF"
    except OSError:
        return False


def find() -> str:
    """Path of the library; NotFound says where it was looked for."""
    folders = [libraries for _, libraries in _PLACES] + list(_SYSTEM)
    return (_named_by(("TIDEMARK_LIBRARY", "TIDEMARK_LIB"), os.path.exists) or
            _first("libtidemark.so", "TIDEMARK_LIBRARY", folders, os.path.exists))


def program() -> str:
    """Path of the program `tidemark`; NotFound says where it was looked for."""
    folders = [programs for programs, _ in _PLACES] + list(filter(os.path.isabs, os.get_exec_path()))
    return (_named_by(("TIDEMARK_PROGRAM",), os.path.isfile) or
            _first("tidemark", "TIDEMARK_PROGRAM", folders, _is_compiled))


def version() -> str:
    """As the program says it, which was told by meson.build."""
    said = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    return said.split()[1]


def open_library() -> ctypes.CDLL:
    """With what the package calls."""
    inside = loaded()
    try:
        return _with_functions(inside or ctypes.CDLL(find(), mode=ctypes.RTLD_GLOBAL))
    except AttributeError as reason:
        which = "the libtidemark.so that is in this process already" if inside else find()
        raise OtherVersion(f"{which} is of another version than this package ({reason}), so that tidemark.step() and the "
                           "like do nothing; use the `tidemark` that came with the package") from reason


def _with_functions(lib: ctypes.CDLL) -> ctypes.CDLL:
    text, number = ctypes.c_char_p, ctypes.c_uint
    for name, arguments in {
            "push": [number, text], "pop": [number], "step": [ctypes.c_int64],
            "mark": [text, text], "tag": [number, ctypes.c_void_p, number, text]}.items():
        function = getattr(lib, "tidemark_record_" + name)
        function.argtypes, function.restype = arguments, None
    lib.tidemark_record_on.argtypes = lib.tidemark_record_n_ooms.argtypes = []
    lib.tidemark_attach.argtypes = [text, text, ctypes.c_size_t]
    # With Python's lock held, which CDLL gives up and PyDLL does not.
    lib.watch = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object)(("tidemark_watch", lib))
    try:
        lib.tally = ctypes.PYFUNCTYPE(ctypes.py_object)(("tidemark_record_tally_function", lib))()
    except ValueError:  # it has not found Python's functions: then it knows nothing, and torch is asked
        lib.tally = lambda device: b""
    if not lib.tidemark_record_want_tally():  # from now on: of blocks that were there before nobody says the size
        log.warning("no memory for the list of the CPU's blocks: what they take is not known")
    lib.tidemark_record_host_memory.argtypes = [ctypes.POINTER(ctypes.c_uint64)]
    lib.tidemark_record_begin_window.argtypes, lib.tidemark_record_begin_window.restype = [number], None
    lib.tidemark_record_window.argtypes = [number, ctypes.POINTER(ctypes.c_uint64)]
    size = ctypes.c_uint64
    lib.tidemark_record_begin_segments.restype, lib.tidemark_record_end_segments.argtypes = size, [size]
    lib.tidemark_record_segment.argtypes, lib.tidemark_record_segment.restype = [number, size, size], None
    lib.tidemark_record_ask.argtypes, lib.tidemark_record_ask.restype = [number], size
    lib.tell = ctypes.PYFUNCTYPE(None, number, *[size] * 5)(("tidemark_record_tell", lib))
    return lib


def module_looked_for() -> Optional[str]:
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


def program_name() -> str:
    """What the user would call this program: its module or its script."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name != "__main__":
        return spec.name[:-len(".__main__")] if spec.name.endswith(".__main__") else spec.name
    script = os.path.basename(sys.argv[0]) if sys.argv else ""
    return module_looked_for() or ("python" if script in ("", "-", "-c", "-m") else script)


def is_imported_for(module: str) -> bool:
    """True while Python imports this package on its way to that module of it."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>" and \
                frame.f_locals.get("name") == module:
            return True
        frame = frame.f_back
    return False


def is_the_program(package: str) -> bool:
    """True while the package is imported to become the program: `python -m tidemark`, `python -m tidemark.sweep`, or
    pip's command."""
    return module_looked_for() in (package, package + ".sweep") or is_imported_for(package + ".__main__")


def make_run_folder() -> str:
    """Make the folder of a run that nobody has named, under a name as `tidemark run` makes it, which is then nobody
    else's. Tests leave nothing behind: their plugin's is a temporary folder."""
    if is_imported_for("tidemark.pytest_plugin"):
        return os.path.join(tempfile.mkdtemp(prefix="tidemark-pytest-"), "pytest.tmk")
    base = "".join(c if c.isalnum() or c in "._-+" else "_" for c in program_name())
    if base.startswith("-"):  # or commands would take it for an option
        base = "_" + base[1:]
    name = f"{base}-{time.strftime('%Y%m%d-%H%M%S')}"
    for serial in itertools.count(1):
        folder = os.path.abspath(f"{name}{'' if serial == 1 else f'-{serial}'}.tmk")
        try:
            os.mkdir(folder, 0o700)
            return folder
        except FileExistsError:
            pass
    raise AssertionError("numbers do not end")


PARENTS_RUN = "TIDEMARK_PARENTS_RUN"  # "PID:FOLDER", of the process that recorded last, for multiprocessing's children


def tell_children(folder: str) -> None:
    """Where this process records. Those that multiprocessing starts anew import the package again; they record into
    the same run, as forked children do. Other programs have runs of their own."""
    os.environ[PARENTS_RUN] = f"{os.getpid()}:{folder}"


def parents_run() -> Optional[str]:
    """The run of the process whose multiprocessing child this is; else None."""
    process = sys.modules.get("multiprocessing.process")
    if process is None:
        return None
    parent = process.parent_process()  # not known yet while the child imports its parent's __main__
    is_starting = getattr(process.current_process(), "_inheriting", False)
    pid, _, folder = os.environ.get(PARENTS_RUN, "").partition(":")
    return folder if folder and (is_starting or parent is not None and str(parent.pid) == pid) else None


SETTINGS = {"TIDEMARK_MAX_SIZE": "max_size", "TIDEMARK_CPU_TENSORS": "cpu_tensors",
            "TIDEMARK_NATIVE": "native", "TIDEMARK_NO_STACKS": "no_stacks",
            "TIDEMARK_NO_MODULES": "no_modules", "TIDEMARK_NO_CATEGORIES": "no_categories",
            "TIDEMARK_STEP_AT": "step_at"}


def _may_have_blocks() -> bool:
    """Blocks of a GPU were there before us."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    return cuda is not None and cuda.is_initialized()


def begin(lib: ctypes.CDLL, folder: str) -> None:
    """Begin to record in this process, as the environment says; RuntimeError with the library's
    reason. Nothing is written before there is something to record."""
    options = f"run={folder}\n" + ("" if _may_have_blocks() else "at_first_event=1\n")
    for variable, option in SETTINGS.items():
        value = os.environ.get(variable, "")
        if value not in ("", "0"):
            options += f"{option}={value}\n"
    message = ctypes.create_string_buffer(1024)
    if lib.tidemark_attach(os.fsencode(options), message, len(message)) != 0:
        raise RuntimeError("tidemark: " + message.value.decode(errors="replace"))
