"""nginx and Docker Compose for the tests of deploy/, and nginx run as the compose file runs it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import trustme

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
TEMPLATE = DEPLOY / "nginx.conf.template"


def nginx_command() -> str:
    """The nginx of this machine. Without one the test is skipped, or fails where it has to run."""
    found = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return found or _missing("nginx", "apt-get install nginx-light")


def compose_command() -> list[str]:
    """Docker Compose, version 2 or later; no Docker behind it is needed. Or as with nginx."""
    beside = Path(sys.executable).with_name("docker-compose")
    for command in (["docker", "compose"], [str(beside)], ["docker-compose"]):
        try:
            asked = [*command, "version", "--short"]
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
        except OSError:
            continue
        if done.returncode == 0 and re.match(r"v?(\d+)", done.stdout.strip()):
            major = int(re.findall(r"\d+", done.stdout)[0])
            if major >= 2:
                return command
    return [_missing("docker compose", "make deploy-tools")]


def _missing(what: str, how: str) -> str:
    reason = f"{what} isn't here: {how}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def render(listen: str, servers: str, *, marks: tuple[str, ...] = (), **values: str | Path) -> str:
    """The proxy's configuration as nginx's image makes it of the template.

    Args:
        servers: what stands for the app.
        marks: `tls` and `login`: the lines with these marks are in force.
        values: further values, without `PROXY_`, in lower case.
    """
    text = TEMPLATE.read_text(encoding="utf-8")
    for mark in marks:
        text = text.replace(f"#{mark} ", "")
    given = {"LISTEN": listen, "APP_SERVERS": servers}
    given |= {name.upper(): str(value) for name, value in values.items()}
    # Source: envsubst, which that image runs for the variables that are set and for no others.
    return re.sub(r"\$\{PROXY_(\w+)\}", lambda found: given.get(found[1], found[0]), text)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def write_certificate(authority: trustme.CA, folder: Path) -> None:
    """A certificate for localhost under the names that the configuration reads."""
    made = authority.issue_cert("localhost")
    made.private_key_pem.write_to_path(folder / "privkey.pem")
    for number, part in enumerate(made.cert_chain_pems):
        part.write_to_path(folder / "fullchain.pem", append=number > 0)


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


class Proxy:
    """nginx with that configuration, until it is stopped."""

    def __init__(self, folder: Path, configuration: str, address: str) -> None:
        self.address = address
        self.log = folder / "nginx.log"
        (folder / "nginx.conf").write_text(configuration, encoding="utf-8")
        self._command = [nginx_command(), "-e", "stderr", "-p", str(folder)]
        self._command += ["-c", str(folder / "nginx.conf")]
        # The image runs all of it as one user; without this, root's workers would be another.
        self._root = " user root;" if os.geteuid() == 0 else ""
        self._process: subprocess.Popen[bytes] | None = None

    def check(self) -> str:
        """What `nginx -t` says; the empty text where all is well and it has nothing to add."""
        command = [*self._command, "-t", "-q", "-g", self._root.strip() or "daemon off;"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else ""

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                [*self._command, "-g", f"daemon off;{self._root}"],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.address}/proxy-health", timeout=2) as reply:
                    assert reply.status == 204
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        pytest.fail(f"nginx did not start: {self.log.read_text()}")

    def stop(self, *, kill: bool = False) -> None:
        """As the image stops; or at once, with every connection cut."""
        if self._process is not None:
            if kill:
                self._process.terminate()
            else:
                self._process.send_signal(3)  # SIGQUIT
            self._process.wait(20)
            self._process = None
