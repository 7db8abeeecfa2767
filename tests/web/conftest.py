# SPDX-License-Identifier: MIT
"""The fixtures of these tests: see web_kit.py."""
import pytest
from web_kit import BUILD, ROOT, Browser, program, tidemark


@pytest.fixture(name="browser", scope="session")
def fixture_browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(name="folder", scope="session")
def fixture_folder(tmp_path_factory):
    return tmp_path_factory.mktemp("pages")


def make_run(folder, name):
    run = folder / f"{name}.tmk"
    if name == "tiny":
        tidemark("run", "-q", "-o", run, "--", BUILD / "tinytrain", "--steps", "12", "--quiet")
    elif name == "hostile":
        tidemark("run", "-q", "-o", run, "--", program("hostile"))
    elif name == "ranks":
        ranks = " & ".join(f"RANK={i} WORLD_SIZE=4 {BUILD}/tinytrain --quiet --steps 6 "
                           f"--batch {4 * (i + 1)}" for i in range(4))
        tidemark("run", "-q", "-o", run, "--", "sh", "-c", f"{ranks}; wait")
    elif name == "lora":
        tidemark("import", ROOT / "tests/data/torch_snapshots/lora.pickle.gz", "-o", run)
    else:
        return ROOT / f"tests/data/ooms/{name}.trace"
    return run


@pytest.fixture(name="page", scope="session")
def fixture_page(folder):
    """page(NAME): (the run, its page), each made once."""
    made = {}

    def page(name):
        if name not in made:
            run = make_run(folder, name)
            file = folder / f"{name}.html"
            tidemark("report", run, "--format", "html", "-o", file)
            made[name] = (run, file)
        return made[name]

    return page
