# SPDX-License-Identifier: MIT
"""`python -m tidemark ...` is `tidemark ...`: the same program."""
import os
import sys

from ._library import program


def main():
    path = program()
    if path is None:
        sys.exit("tidemark: the program is not found; build it (./dev build) or put it on the PATH")
    os.execv(path, ["tidemark", *sys.argv[1:]])


main()
