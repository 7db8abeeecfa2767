# SPDX-License-Identifier: MIT
"""`python -m tidemark ...` is `tidemark ...`: the same program. So is the command that pip installs."""
import os
import sys

from ._library import NotFound, program


def main() -> None:
    try:
        path = program()
    except NotFound as reason:
        sys.exit(f"tidemark: {reason}")
    os.execv(path, ["tidemark", *sys.argv[1:]])


if __name__ == "__main__":
    main()
