"""A real nginx that holds streams back, for what has to notice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.deploy_tools import Proxy, free_port

# By itself nginx passes small pieces on with buffering, too; once it packs them it no longer does.
_NGINX = """
worker_processes 1; pid {folder}/nginx.pid; error_log stderr;
events {{ worker_connections 64; }}
http {{
  access_log off;
  gzip on; gzip_types text/event-stream; gzip_min_length 0; gzip_proxied any;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/temp;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location = /proxy-health {{ return 204; }}
    location / {{
      proxy_pass http://127.0.0.1:{behind}; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_buffering {buffering};
    }}
  }}
}}
"""


@contextmanager
def packing_proxy(folder: Path, behind: int, *, buffering: Literal["on", "off"]) -> Iterator[str]:
    """The address of one before that port of this machine."""
    port = free_port()
    text = _NGINX.format(folder=folder, port=port, behind=behind, buffering=buffering)
    proxy = Proxy(folder, text, f"http://127.0.0.1:{port}")
    proxy.start()
    try:
        yield proxy.address
    finally:
        proxy.stop(kill=True)
