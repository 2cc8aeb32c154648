"""The installer of vLLM, without installing it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.servers import vllm_cpu
from tests.servers.vllm_cpu import (
    UnsupportedMachineError,
    is_whole,
    require_supported,
    requirements_of,
    vllm_python,
)

METADATA = """Metadata-Version: 2.4
Name: vllm-cpu
Requires-Dist: numpy
Requires-Dist: fastapi[standard]<0.137.0,>=0.133.0
Requires-Dist: torch==2.13.0+cpu; platform_machine == "x86_64"
Requires-Dist: torchvision; platform_machine != "riscv64"
Requires-Dist: torchcodec>=0.14
Requires-Dist: torchao-like
Requires-Dist: six>=1.16.0; python_version > "3.11"
Requires-Dist: pandas; extra == "bench"

Requires-Dist: not a header any more
"""


def test_what_would_bring_another_torch_is_left_out() -> None:
    assert requirements_of(METADATA) == [
        "numpy",
        "fastapi[standard]<0.137.0,>=0.133.0",
        "torchao-like",
        'six>=1.16.0; python_version > "3.11"',
    ]


@pytest.mark.parametrize(
    ("system", "machine", "flags", "named"),
    [
        ("Darwin", "arm64", "", "Darwin arm64"),
        ("Linux", "aarch64", "", "Linux aarch64"),
        ("Linux", "x86_64", "sse4_2 fma f16c", "avx2"),
    ],
)
def test_a_machine_that_cannot_run_it_is_told_why(
    system: str, machine: str, flags: str, named: str
) -> None:
    with pytest.raises(UnsupportedMachineError, match=named):
        require_supported(system, machine, flags.split())
    require_supported("Linux", "x86_64", ["avx2", "fma", "f16c"])


def test_an_environment_is_made_once_and_half_of_one_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "vllm"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "left-over").touch()
    made = []

    def make(where: Path) -> None:
        made.append(where)
        vllm_cpu.sign(where)

    monkeypatch.setenv("STEADY_CHAT_TEST_VLLM", str(folder))
    monkeypatch.setattr(vllm_cpu, "require_supported", lambda *machine: None)
    monkeypatch.setattr(vllm_cpu, "_make", make)
    assert not is_whole(folder)
    assert [vllm_python(), vllm_python()] == [folder / "bin" / "python"] * 2
    assert made == [folder]
    monkeypatch.setattr(sys, "version", "another Python")
    assert not is_whole(folder)
