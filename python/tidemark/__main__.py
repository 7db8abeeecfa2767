# SPDX-License-Identifier: MIT
"""`python -m tidemark ...` is `tidemark ...`: the same program."""
import os
import shutil
import sys


def program():
    folder = os.path.dirname(os.path.abspath(__file__))
    for candidate in (os.environ.get("TIDEMARK_PROGRAM", ""),
                      os.path.join(folder, "tidemark"),
                      os.path.join(folder, "..", "..", "build", "tidemark"),
                      os.path.join(folder, "..", "..", "..", "bin", "tidemark"),
                      os.path.join(folder, "..", "..", "..", "..", "bin", "tidemark")):
        if candidate and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return os.path.realpath(candidate)
    return shutil.which("tidemark")


def main():
    path = program()
    if path is None:
        sys.exit("tidemark: the program is not found; build it (./dev build) or put it on the PATH")
    os.execv(path, ["tidemark", *sys.argv[1:]])


main()
