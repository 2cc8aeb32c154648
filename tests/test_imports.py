"""What may import what: the engine is light, vendors have one place each, imports run one way."""

from __future__ import annotations

import ast
import graphlib
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = {"torch", "transformers", "openai", "httpx", "httpx2", "streamlit", "gguf", "bitsandbytes"}
HEAVY |= {"sqlalchemy", "alembic", "psycopg", "redis", "altair", "prometheus_client"}

DATABASE = (
    "cache_file",
    "cache_redis",
    "cache_sqlite",
    "cache_sqlite_log",
    "cache_tables",
    "conversation_archive",
    "conversation_database",
    "conversation_tables",
    "database",
    "metrics_log",
    "metrics_report",
    "postgres_connection",
    "preset_store",
)

# The files of a local model's inside are loaded with torch, by the backend that needs them; those
# of the databases by whoever makes the store, and Prometheus' where it is switched on.
LIGHT = sorted(
    path
    for path in (ROOT / "llm").rglob("*.py")
    if (not path.name.startswith("local_") or path.name == "local_backend.py")
    and path.stem not in (*DATABASE, "metrics_prometheus")
    and "migrations" not in path.parts
)
LAYERS = {"llm": 0, "api": 1, "ui": 2, "pages": 3, "streamlit_app": 3}

# Just where each vendor is known. A file that no longer imports it is to be taken out here.
VENDORS: dict[str, set[str]] = {
    "openai": {"llm/vllm_client.py"},
    "httpx": set(),
    "httpx2": {"llm/sign_in_setup.py", "llm/vllm_client.py"},
    "torch": {
        "llm/local_batch.py",
        "llm/local_batch_start.py",
        "llm/local_convert.py",
        "llm/local_embedding.py",
        "llm/local_fingerprint.py",
        "llm/local_loader.py",
        "llm/local_memory.py",
        "llm/local_packed.py",
        "llm/local_ragged.py",
        "llm/local_sampling.py",
        "llm/local_sdpa.py",
        "llm/local_stopping.py",
    },
    "transformers": {
        "llm/local_attention.py",
        "llm/local_convert.py",
        "llm/local_embedding.py",
        "llm/local_fingerprint.py",
        "llm/local_loader.py",
        "llm/local_progress.py",
        "llm/local_ragged.py",
        "llm/local_sampling.py",
        "llm/local_sdpa.py",
        "llm/local_streamer.py",
    },
    "tokenizers": set(),
    "gguf": {"llm/local_convert.py"},
    "bitsandbytes": {"llm/local_loader.py"},
    "huggingface_hub": {"llm/local_hub_download.py"},
    "jinja2": {"llm/local_generation.py"},
    "psutil": {"llm/local_memory.py", "llm/process_memory.py"},
    "starlette": {
        "api/access.py",
        "api/bodies.py",
        "api/chat_completions.py",
        "api/client.py",
        "api/embeddings.py",
        "api/errors.py",
        "api/events.py",
        "api/routes.py",
        "api/service.py",
        "api/stream.py",
        "ui/api_routes.py",
        "ui/metrics_route.py",
        "ui/paint_probe.py",
    },
    "altair": {"ui/metrics_charts.py"},
    "prometheus_client": {"llm/metrics_prometheus.py"},
    "pydantic": {"api/bodies.py", "llm/reasons.py", "llm/script_file.py", "llm/settings.py"},
    "pydantic_settings": {"llm/settings.py"},
    "fluent": {"llm/catalogue.py"},
    "sqlalchemy": {
        "llm/cache_file.py",
        "llm/cache_sqlite.py",
        "llm/cache_sqlite_log.py",
        "llm/cache_tables.py",
        "llm/conversation_archive.py",
        "llm/conversation_database.py",
        "llm/conversation_search.py",
        "llm/conversation_tables.py",
        "llm/database.py",
        "llm/metrics_log.py",
        "llm/metrics_report.py",
        "llm/migrations/versions/v0001_conversations.py",
        "llm/migrations/versions/v0002_figures.py",
        "llm/preset_store.py",
    },
    "alembic": {
        "llm/database.py",
        "llm/migrations/env.py",
        "llm/migrations/versions/v0001_conversations.py",
        "llm/migrations/versions/v0002_figures.py",
        "llm/migrations/versions/v0003_figures_by_server.py",
    },
    "rjieba": {"llm/chinese_words.py"},
    "psycopg": {"llm/postgres_connection.py"},
    "redis": {"llm/cache_redis.py"},
    "babel": {"llm/catalogue.py"},
    "rich": {"llm/terminal_rich.py", "llm/terminal_status.py"},
}


def product_files() -> list[Path]:
    folders = [
        path for name in ("llm", "api", "ui", "pages") for path in (ROOT / name).rglob("*.py")
    ]
    return sorted([*folders, *ROOT.glob("streamlit_app.py")])


class NoTypes(ast.NodeTransformer):
    """Takes out what only a type checker sees."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        typing_only = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if typing_only else self.generic_visit(node)


def imports(path: Path, *, running: bool = False) -> Iterator[str]:
    """The full names of all that a file imports, wherever in it; or just what it runs with."""
    tree: ast.AST = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(NoTypes().visit(tree) if running else tree):
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
    if own < LAYERS["ui"]:
        assert "streamlit" not in tops(path)


@pytest.mark.parametrize("vendor", VENDORS)
def test_each_vendor_is_imported_in_its_place_only(vendor: str) -> None:
    users = {path.relative_to(ROOT).as_posix() for path in product_files() if vendor in tops(path)}
    assert users == VENDORS[vendor]


def pins(name: str) -> set[str]:
    """The packages that a requirements file pins."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return {package(re.split(r"\[|==", line)[0]) for line in lines if "==" in line}


def package(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def packages(paths: list[Path]) -> set[str]:
    """The packages that these files import."""
    own = {"benchmarks", "examples", "tests", *LAYERS}
    names = set().union(*(tops(path) for path in paths)) - own - set(sys.stdlib_module_names)
    providers = importlib.metadata.packages_distributions()
    return {package(providers[name][0]) for name in names}


def test_what_the_product_imports_is_pinned_and_little_else() -> None:
    imported, pinned = packages(product_files()), pins("requirements.txt")
    assert imported <= pinned
    assert pinned - imported == {
        "authlib",  # streamlit signs people in with it
        "accelerate",  # transformers places large models with it
        "tokenizers",  # transformers reads GGUF files with it
    }


def test_what_only_tests_and_benchmarks_need_is_pinned_apart() -> None:
    paths = [path for name in ("tests", "benchmarks") for path in (ROOT / name).rglob("*.py")]
    # Each peer's app runs in an environment of its own, by pins of its own.
    paths = [path for path in paths if path.parent.name != "apps"]
    pinned = pins("requirements-dev.txt")
    assert pinned - packages(paths) == {
        *("mypy", "ruff", "fastapi", "oidc-provider-mock", "pytest-rerunfailures"),
        "websocket-client",  # the client of python-socketio needs it
    }
    assert not pinned & packages(product_files())


def test_what_only_an_example_needs_is_pinned_beside_it() -> None:
    brought = pins("requirements.txt")
    for name, unseen in (("gradio", set()), ("socketio", {"python-socketio", "simple-websocket"})):
        imported = packages([ROOT / f"examples/{name}_app.py", ROOT / "examples/inference.py"])
        assert imported - brought == pins(f"examples/{name}_requirements.txt") - unseen


def test_concrete_backends_are_named_in_one_place() -> None:
    concrete = {"llm.local_backend", "llm.vllm_backend", "llm.scripted_backend"}
    users = {
        path.relative_to(ROOT).as_posix()
        for path in [*product_files(), *(ROOT / "examples").glob("*.py")]
        if concrete & set(imports(path, running=True))
    }
    assert users == {"llm/named_backends.py"}


def test_the_engine_does_not_know_its_terminal_face() -> None:
    for path in (ROOT / "llm").rglob("*.py"):
        if not re.fullmatch(r"__main__|terminal(_\w+)?", path.stem):
            assert not [name for name in imports(path) if name.startswith("llm.terminal_")], path


def test_no_file_of_the_engine_imports_itself_by_a_detour() -> None:
    """Imports inside functions count too: they hide a cycle, they don't undo it."""
    engine = {module_name(path): path for path in (ROOT / "llm").rglob("*.py")}
    needs = {name: set(imports(path, running=True)) & set(engine) for name, path in engine.items()}
    order = graphlib.TopologicalSorter(needs)
    order.prepare()
