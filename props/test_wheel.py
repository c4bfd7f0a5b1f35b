"""The wheel is what is tested: built and installed outside the checkout, it checks a subject."""

import json
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*command, "--wheel-dir", str(target), str(ROOT)], check=True)
    (built,) = target.glob("overflow_tree-*.whl")
    return built


def test_only_import_package(wheel: Path) -> None:
    """`overflow` is the only import package, and its SQL and type marker are inside."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"overflow"}
    assert {"overflow/store/schema.sql", "overflow/py.typed"} <= set(names)


def test_check_runs_from_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """In an environment that holds the wheel, its own copy of the package and no checkout, `overflow check` runs."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    purelib = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
    )
    zipfile.ZipFile(wheel).extractall(purelib)
    # The requirements are those of this environment, behind the wheel: nothing is fetched.
    (purelib / "requirements.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    where = [python, "-c", "import overflow; print(overflow.__file__)"]
    found = subprocess.run(where, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert Path(found.strip()).is_relative_to(environment)

    check = [python, "-m", "overflow", "check", "--invariant", "4", "--corpus", "none", "--json", "-"]
    ran = subprocess.run(check, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0, ran.stderr
    (result,) = json.loads(ran.stdout)["results"]
    assert (result["invariant"], result["status"]) == ("4", "holds")
    assert result["divided"] * 2 >= result["examples"]
