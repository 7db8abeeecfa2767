# SPDX-License-Identifier: MIT
"""S5's page, its blocks as they stand, with an ENDPOINT on another machine."""
import sys

from remote_kit import REPO

sys.path.insert(0, str(REPO / "tests" / "seeds"))
import seed_sessions  # noqa: E402 (the path comes first)


def test_session_of_s5(machine, tmp_path):
    found = []
    rings = tmp_path / "rings"
    rings.mkdir()
    asking = {name: machine.environment()[name] for name in ("XDG_RUNTIME_DIR", "TIDEMARK_SSH")}
    logins = machine.logins()
    seed_sessions.check_session(lambda what, ok, **figures: found.append((what, bool(ok), figures)), tmp_path, rings,
                                "node7:", asking)
    assert [what for what in found if not what[1]] == []
    assert len(found) >= 14
    assert machine.logins() <= logins + 1
