"""This app beside Gradio's ChatInterface, Chainlit and Open WebUI, over the same stream.

    python -m benchmarks.peers                           # about 9 minutes, once they are installed
    python -m benchmarks.peers --only app,gradio --tokens 1500 --rate 100
    python -m benchmarks.peers --pictures FOLDER         # a picture of each in mid-stream, as well

All ask the same server (../protocol_server.py), which gives the same answer at the same pace; one
after the other, and only the one that is measured runs. Each has a fresh tab of the same Chromium,
1280 by 800, and a short answer with code and a formula first. A person clicks into the input, types
a letter and takes it back, a press every 300 ms, as long as the answer comes. How each is set up
stands in its own file.

- **whole text in the page**: every numbered block of the answer is there once and in order, by 30 s
  after the stream should have ended. **Characters** are those of the answer's text then, without
  white space; a formula that is drawn counts other ones than a formula that is left as it was told.
- **reader kept at the end**: the end of the answer is in sight, then.
- **behind the stream at its end**: from when the last token was due, by the server's first one and
  the rate, until the end mark was painted.
- **first text**: from sending the question until the first piece was painted.
- **frames over 50 ms**, **longest frame**: the gap between two animation frames, from the question
  until a second after the end or after giving up.
- **key delay**: from a key in the input until the next frame was painted (Event Timing); three of
  four were within that.
- **to the browser**: bytes over the line, as the kernel counted them; packed where it is packed.
- **server CPU**: processor seconds of that peer's processes, in the same time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from benchmarks.__main__ import RESULTS, machine
from benchmarks.browser_probe import chromium
from benchmarks.peers.chainlit_chat import CHAINLIT
from benchmarks.peers.environment import peer_bin
from benchmarks.peers.gradio_chat import GRADIO
from benchmarks.peers.measure import PeerFigures, measure_peer
from benchmarks.peers.open_webui import OPEN_WEBUI, OPEN_WEBUI_UNBATCHED
from benchmarks.peers.peer import Peer
from benchmarks.peers.steady_chat import STEADY_CHAT
from benchmarks.peers.table import peers_table, stream_title
from benchmarks.protocol_server import protocol_server

PEERS: dict[str, Peer] = {
    "app": STEADY_CHAT,
    "gradio": GRADIO,
    "chainlit": CHAINLIT,
    "open-webui": OPEN_WEBUI,
    "open-webui-unbatched": OPEN_WEBUI_UNBATCHED,
}
INSTALLED = ("gradio", "chainlit", "open-webui")
STREAMS = [(12_000, 400.0), (600, 40.0)]
"""One that is a strain, and one at a pace at which everybody is at ease."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--only", default=",".join(PEERS), help="of " + ", ".join(PEERS))
    parser.add_argument("--tokens", type=int, help="one stream of so many, at least 600")
    parser.add_argument("--rate", type=float, default=400, help="its tokens a second")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for the JSON file")
    parser.add_argument("--pictures", type=Path, help="folder; taking them costs a frame or two")
    parser.add_argument("--install", action="store_true", help="make the environments, and no more")
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    if unknown := set(names) - set(PEERS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    # All are there before the first is measured.
    for name in INSTALLED:
        if any(each.startswith(name) for each in names):
            peer_bin(name)
    if chosen.install:
        return 0
    if chosen.pictures:
        chosen.pictures.mkdir(parents=True, exist_ok=True)
    streams = [(chosen.tokens, chosen.rate)] if chosen.tokens else STREAMS
    host, started_s = machine(), time.monotonic()
    figures: list[PeerFigures] = []
    failed = []
    with chromium() as browser, protocol_server(*streams[0], *streams[1:]) as (base_url, _):
        host["chromium"] = browser.version
        for name in names:
            print(f"{name} …", file=sys.stderr, flush=True)
            try:
                peer, pictures = PEERS[name], chosen.pictures
                figures += measure_peer(browser, name, peer, base_url, streams, pictures)
            except Exception:  # noqa: BLE001 - what the others took minutes to measure is kept
                traceback.print_exc()
                failed.append(name)
    titles = {name: f"{PEERS[name].title} ({PEERS[name].version})" for name in names}
    for tokens, rate in streams:
        print(f"\n**{stream_title(tokens, rate)}**\n")
        told = [f for f in figures if (f.tokens, f.rate) == (tokens, rate)]
        print(peers_table(told, titles))
    chosen.out.mkdir(parents=True, exist_ok=True)
    path = chosen.out / f"{datetime.now():%Y-%m-%dT%H-%M-%S}-peers.json"
    about = {
        "machine": host,
        "took_s": round(time.monotonic() - started_s, 1),
        "failed": failed,
        "peers": {n: {"version": PEERS[n].version, "settings": PEERS[n].settings} for n in names},
        "figures": [asdict(f) for f in figures],
    }
    path.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"\n{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
