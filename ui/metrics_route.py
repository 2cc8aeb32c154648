"""`/metrics`: this process's figures for Prometheus, for who has the token."""

from __future__ import annotations

import hmac

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from llm.errors import SettingsError
from ui import resources

PATH = "/metrics"


def tell(request: Request) -> Response:
    """The figures; 404 while that is off, 401 without the token. Runs on a thread of its own."""
    try:
        exporter, token = resources.exporter(), resources.settings().metrics_token
    except SettingsError:  # the page says it
        exporter = token = None
    if exporter is None or token is None:
        return Response(status_code=404)
    given = request.headers.get("Authorization", "").encode("latin-1")  # the bytes as they came
    if not hmac.compare_digest(given, f"Bearer {token.get_secret_value()}".encode()):
        return Response(status_code=401, headers={"WWW-Authenticate": "Bearer"})
    from llm.metrics_prometheus import CONTENT_TYPE

    headers = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store"}
    return Response(exporter.text(), headers=headers)


def metrics_route() -> Route:
    return Route(PATH, tell, methods=["GET"])
