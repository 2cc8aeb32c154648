"""A browser session without a browser: Streamlit's web socket, spoken as the page speaks it.

Dozens of people at once are more than the browsers of one machine can play, and a browser would
use the processor that is to be measured. This says what the page says when somebody opens it and
asks, and looks at what comes back only as far as telling when a text arrives.
"""

from __future__ import annotations

import time
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect


class WebSession:
    """One person's open page.

    Args:
        url: the app's address, `http://…`.

    Thread-safety: one event loop.
    """

    def __init__(self, url: str) -> None:
        self._url = url.replace("http", "ws", 1) + "/_stcore/stream"
        self._stack = AsyncExitStack()
        self._socket: ClientConnection
        self._page = ""
        self._chat_input = ""
        self.received_bytes = 0
        self.received_messages = 0

    async def __aenter__(self) -> Self:
        self._socket = await self._stack.enter_async_context(
            connect(self._url, subprotocols=["streamlit"], max_size=None, proxy=None)  # type: ignore[list-item]
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def open_page(self) -> None:
        """Have the page drawn, as on a first visit."""
        await self._run()
        while True:
            message = ForwardMsg.FromString(await self._receive())
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self._page = message.new_session.page_script_hash
            elif kind == "delta" and message.delta.new_element.HasField("chat_input"):
                self._chat_input = message.delta.new_element.chat_input.id
            elif kind == "script_finished" and self._chat_input:
                return

    async def ask(self, question: str) -> float:
        """Send the question; returns when, as wall-clock seconds."""
        state = WidgetState(id=self._chat_input)
        state.chat_input_value.data = question
        asked_at = time.time()
        await self._run(state)
        return asked_at

    async def wait_for(self, text: str) -> float:
        """When the first message with this text had arrived, as wall-clock seconds.

        The text is looked for in the message's bytes: taking each apart would cost more processor
        than the server spends on sending it.
        """
        wanted = text.encode()
        while True:
            if wanted in await self._receive():
                return time.time()

    async def stay(self) -> None:
        """Take what comes, as an open page does; until cancelled."""
        while True:
            await self._receive()

    async def _receive(self) -> bytes:
        message = await self._socket.recv()
        assert isinstance(message, bytes)
        self.received_bytes += len(message)
        self.received_messages += 1
        return message

    async def _run(self, state: WidgetState | None = None) -> None:
        message = BackMsg()
        message.rerun_script.page_script_hash = self._page
        message.rerun_script.context_info.locale = "en-US"
        message.rerun_script.context_info.timezone = "UTC"
        if state is not None:
            message.rerun_script.widget_states.widgets.append(state)
        await self._socket.send(message.SerializeToString())
