"""What may import what: the engine is light, vendors have one place each, imports run one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"torch", "transformers", "openai", "httpx", "httpx2", "streamlit", "gguf", "bitsandbytes"}

# The files of a local model's inside are loaded with torch, by the backend that needs them.
LIGHT = sorted(
    path
    for path in (ROOT / "llm").rglob("*.py")
    if not path.name.startswith("local_") or path.name == "local_backend.py"
)
LAYERS = {"llm": 0, "ui": 1, "pages": 2, "streamlit_app": 2}

LOCAL = ("llm/local_", "llm/embedded_model.py", "llm/models.py")
VENDORS: dict[str, tuple[str, ...]] = {
    "openai": ("llm/vllm_client.py",),
    "httpx": (),
    "httpx2": ("llm/vllm_client.py",),
    "torch": LOCAL,
    "transformers": LOCAL,
    "tokenizers": LOCAL,
    "gguf": LOCAL,
    "bitsandbytes": LOCAL,
    "fluent": ("llm/catalogue.py",),
}


def product_files() -> list[Path]:
    folders = [path for name in ("llm", "ui", "pages") for path in (ROOT / name).rglob("*.py")]
    return sorted([*folders, *ROOT.glob("streamlit_app.py")])


def imports(path: Path) -> Iterator[str]:
    """The full names of all that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: imports are absolute here"
            yield node.module or ""


def tops(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def loaded_by(modules: list[str]) -> dict[str, list[str]]:
    """For each module, the heavy ones that a fresh interpreter has loaded after importing it."""
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name)\n"
        f"    print(name, *sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}


def test_the_engine_loads_nothing_heavy() -> None:
    loaded = loaded_by(["llm", *(module_name(path) for path in LIGHT)])
    assert len(loaded) >= 10
    assert {name: heavy for name, heavy in loaded.items() if heavy} == {}


def test_making_a_backend_loads_nothing_heavy_either() -> None:
    code = (
        "import sys\n"
        "from llm.settings import Settings\n"
        "from llm.vllm_backend import VllmBackend\n"
        "from llm.scripted_backend import ScriptedBackend\n"
        "from llm.local_backend import LocalBackend\n"
        "for kind in (VllmBackend, ScriptedBackend, LocalBackend):\n"
        "    kind.from_settings(Settings())\n"
        f"print(*sorted({HEAVY!r} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_this_file_would_notice() -> None:
    assert "openai" in loaded_by(["openai"])["openai"]


@pytest.mark.parametrize(
    "path", product_files(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_imports_run_one_way(path: Path) -> None:
    own = LAYERS[path.relative_to(ROOT).parts[0].removesuffix(".py")]
    upward = {top for top in tops(path) if LAYERS.get(top, 0) > own}
    assert not upward
    if own == 0:
        assert "streamlit" not in tops(path)


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_vendor_is_imported_in_its_place_only(vendor: str) -> None:
    users = {path.relative_to(ROOT).as_posix() for path in product_files() if vendor in tops(path)}
    strangers = {user for user in users if not user.startswith(VENDORS[vendor] or ("-",))}
    assert not strangers


def test_only_the_resources_name_concrete_backends() -> None:
    concrete = {"llm.local_backend", "llm.vllm_backend", "llm.scripted_backend"}
    allowed = {"ui/resources.py", "llm/script_file.py"}
    users = {
        path.relative_to(ROOT).as_posix()
        for path in product_files()
        if concrete & set(imports(path))
    }
    assert {user for user in users if not user.startswith("llm/local_")} <= {
        *allowed,
        "llm/scripted_backend.py",
    }
