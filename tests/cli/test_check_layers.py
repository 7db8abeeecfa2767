# SPDX-License-Identifier: MIT
"""`tools/check_layers` reports each mistake that it is there for, at its line. The script runs in a
small tree that has every layer, a header in each, and one planted mistake."""
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    (tmp_path / "tools").mkdir()
    for name in ("check_layers", "c_sources.py"):
        shutil.copy(REPO / "tools" / name, tmp_path / "tools" / name)
    for layer in (path for path in (REPO / "src").iterdir() if path.is_dir()):
        plant(tmp_path, f"src/{layer.name}/{layer.name}_part.h", "#include <stddef.h>\n")
    return tmp_path


def plant(tree, path, text):
    (tree / path).parent.mkdir(parents=True, exist_ok=True)
    (tree / path).write_text(text, encoding="utf-8")


def complaints(tree, *arguments):
    """What the tree's own check_layers says of it, a line each."""
    done = subprocess.run([sys.executable, "-B", str(tree / "tools" / "check_layers"), *arguments],
                          capture_output=True, text=True, timeout=240, check=False)
    assert done.stderr == ""
    assert done.returncode == (1 if done.stdout else 0)
    return done.stdout.splitlines()


def test_good_tree(tree):
    plant(tree, "src/cli/plot/axis.c", '#include "cli/plot/axis.h"\n\n#include <stdio.h>\n\n#include "base/base_part.h"\n')
    plant(tree, "src/cli/plot/axis.h", "struct tmk_axis;\n")
    plant(tree, "src/cli/plot/bars.h", '#include "cli/plot/axis.h"\n\nstruct tmk_axis {\n    int n;\n};\n')
    assert complaints(tree) == []


def test_upward_include(tree):
    plant(tree, "src/base/bytes.c", '#include <stdio.h>\n#include "kit/kit_part.h"\n')
    assert complaints(tree) == ["src/base/bytes.c:2: base/ may not use kit/"]


def test_upward_include_in_a_subfolder(tree):
    plant(tree, "src/base/sub/bytes.c", '#include <stdio.h>\n#include "kit/kit_part.h"\n')
    plant(tree, "src/base/sub/deep/words.h", '\n\n#include <cli/cli_part.h>\n')
    assert complaints(tree) == ["src/base/sub/bytes.c:2: base/ may not use kit/",
                                "src/base/sub/deep/words.h:3: base/ may not use cli/"]


def test_own_header_in_a_subfolder(tree):
    plant(tree, "src/cli/plot/axis.h", "")
    plant(tree, "src/cli/plot/axis.c", '\n#include <stdio.h>\n#include "cli/plot/axis.h"\n')
    assert complaints(tree) == ['src/cli/plot/axis.c:2: the own header, "cli/plot/axis.h", comes first']


def test_rooms_in_a_circle(tree):
    """The place is where the circle is cut with the least work: one include instead of two."""
    plant(tree, "src/cli/plot/axis.h", '#include "cli/sweep/page.h"\n')
    plant(tree, "src/cli/plot/bars.h", '#include "cli/sweep/page.h"\n')
    plant(tree, "src/cli/sweep/page.h", "")
    plant(tree, "src/cli/sweep/page.c", '#include "cli/sweep/page.h"\n\n#include "cli/plot/axis.h"\n')
    assert complaints(tree) == ["src/cli/sweep/page.c:3: rooms in a circle: cli/plot -> cli/sweep -> cli/plot; "
                                "cli/sweep uses cli/plot in 1 place"]


def test_layer_and_its_subfolder_in_a_circle(tree):
    """The files of passes/ that lie in no subfolder are a room too. Here three are in the circle."""
    plant(tree, "src/passes/peak.h", '#include "passes/leak/trend.h"\n')
    plant(tree, "src/passes/leak/trend.h", '#include "passes/whatif/replay.h"\n')
    plant(tree, "src/passes/whatif/replay.h", '#include "passes/peak.h"\n')
    assert complaints(tree) == ["src/passes/peak.h:1: rooms in a circle: passes -> passes/leak -> passes/whatif -> "
                                "passes; passes uses passes/leak in 1 place"]


def test_duplicate_file_name(tree):
    plant(tree, "src/kit/sub/lines.h", "")
    plant(tree, "src/base/lines.c", "")
    plant(tree, "src/base/lines.py", "")
    assert complaints(tree) == ["src/kit/sub/lines.h:1: src/base/lines.c has this name already"]


def test_duplicate_struct_tag(tree):
    plant(tree, "src/sql/store.h", "struct tmk_cell;\nstruct tmk_cell *tmk_store_cell(void);\n")
    plant(tree, "src/sql/table.c", "\nstruct tmk_cell {\n    int row;\n};\n")
    plant(tree, "src/tui/grid.h", "struct tmk_cell;\n\nenum tmk_cell {\n    TMK_CELL\n};\n")
    assert complaints(tree) == ["src/tui/grid.h:3: enum tmk_cell is defined in src/sql/table.c:2 already"]


def test_unknown_layer(tree):
    plant(tree, "src/paper/page.c", "#include <stdio.h>\n")
    assert complaints(tree) == ["src/paper/page.c:1: src/paper/ is not a known layer: "
                                "give it a place in tools/check_layers"]


def test_source_in_no_layer(tree):
    plant(tree, "src/page.c", "#include <stdio.h>\n")
    assert complaints(tree) == ["src/page.c:1: a source belongs into a layer, a folder of src/"]


def test_layer_without_a_folder(tree):
    """The place is the entry that is too many."""
    shutil.rmtree(tree / "src" / "monitor")
    lines = (tree / "tools" / "check_layers").read_text(encoding="utf-8").splitlines()
    at = next(number for number, line in enumerate(lines, 1) if line.startswith('    "monitor": '))
    assert complaints(tree) == [f"tools/check_layers:{at}: there is no layer src/monitor/"]


def test_self_check(tree):
    assert complaints(tree, "--self-check") == []
