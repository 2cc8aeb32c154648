"""The terminal face, as processes: what goes where, what is seen, and how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model_data import model_data_dir
from tests.protocol_server import Exchange, ProtocolServer, chunk
from tests.terminal_process import PATIENCE_S, TerminalProcess, command, environment

ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1;1H &#27;[2J\ttab\r\n"


@pytest.fixture
def server() -> Iterator[ProtocolServer]:
    with ProtocolServer() as running:
        yield running


def scripts(folder: Path, **told: object) -> str:
    """A scripts file with this default answer."""
    path = folder / "scripts.json"
    path.write_text(json.dumps({"default": told}), encoding="utf-8")
    return str(path)


def scripted(folder: Path, env: dict[str, str] | None = None, **told: object) -> dict[str, str]:
    """An environment in which this is answered, by no model."""
    return environment(
        folder,
        STEADY_CHAT_BACKENDS="scripted",
        STEADY_CHAT_SCRIPTS_FILE=scripts(folder, **told),
        **(env or {}),
    )


def asking(folder: Path, url: str, **variables: str) -> dict[str, str]:
    """An environment in which this server is asked."""
    return environment(
        folder, STEADY_CHAT_BACKENDS="vllm", STEADY_CHAT_VLLM_BASE_URL=url, **variables
    )


def run(
    folder: Path, env: dict[str, str], *arguments: str, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(*arguments),
        input=given,
        capture_output=True,
        cwd=folder,
        env=env,
        timeout=PATIENCE_S,
        check=False,
    )


def start(folder: Path, env: dict[str, str], *arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(*arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=env,
    )


def test_the_answer_comes_as_it_is_generated_and_ctrl_c_keeps_what_has_come(
    tmp_path: Path,
) -> None:
    env = scripted(tmp_path, text="one two three", chunk_chars=4, stall_after=2)
    with start(tmp_path, env, "Count.") as process:
        assert process.stdout is not None
        # It is there though the answer isn't over, and never will be by itself.
        assert process.stdout.read(8) == b"one two "
        process.send_signal(signal.SIGINT)
        rest, said = process.communicate(timeout=PATIENCE_S)
    assert rest == b"\n"
    assert b"stopped" in said
    assert process.returncode == 130


# Presses Ctrl-C while a module is imported.
_PRESS = """
import os, runpy, signal, sys
class Press:
    def find_spec(self, name, path, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Press())
sys.argv[1:] = [sys.argv[1], "Count."]
runpy.run_module("llm", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("module", ["llm.terminal", "pydantic", "fluent.runtime", "babel.numbers"])
def test_ctrl_c_before_anything_is_asked_ends_it_without_a_traceback(
    tmp_path: Path, module: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _PRESS, module],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        env=scripted(tmp_path, text="one", prefill_s=600),
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode in (-signal.SIGINT, 130)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_pipe_gets_the_text_and_nothing_else(tmp_path: Path) -> None:
    env = scripted(
        tmp_path,
        {"LC_ALL": "C"},
        text="\n\n**{question}** 好🙂" + ESCAPES + "\n\n",
        reasoning="Let me see.",
    )
    done = run(tmp_path, env, "总结", "this", given="第一行\nline two\n".encode())
    assert done.returncode == 0
    assert done.stdout.decode() == (
        "**第一行\nline two\n\n总结 this** 好🙂]0;owned[2J[31mred1;1H &#27;[2J\ttab\n"
    )
    assert b"Let me see" not in done.stderr
    assert b"scripted" in done.stderr  # the receipt
    assert b"\x1b" not in done.stderr

    done = run(tmp_path, env, "Before", "--reasoning", "-", "after", given=b"between")
    assert "**Before\n\nbetween\n\nafter**" in done.stdout.decode()
    assert b"Let me see.\n" in done.stderr


def test_a_reader_who_goes_stops_the_model_and_hears_nothing(
    tmp_path: Path, server: ProtocolServer
) -> None:
    async def endless(exchange: Exchange) -> None:
        await exchange.head()
        while True:
            await exchange.say("line\n\n")
            await asyncio.sleep(0.01)

    server.when("ever", endless)
    with start(tmp_path, asking(tmp_path, server.url), "For ever.") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line\n"
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 141
        assert process.stderr.read() == b""
    assert server.exchange().gone.wait(PATIENCE_S)


def test_a_chat_keeps_its_history_and_ctrl_c_only_stops_the_answer(
    tmp_path: Path, server: ProtocolServer
) -> None:
    async def never_ending(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("As far as here")
        await exchange.hold()

    server.when("long", never_ending)
    env = asking(tmp_path, server.url, STEADY_CHAT_SYSTEM_PROMPT="Be brief.")
    with TerminalProcess(env=env, cwd=tmp_path) as terminal:  # no question: it is a chat
        terminal.wait_for(">")
        terminal.type("Hello?\r")
        terminal.wait_for("Hello, world!")
        terminal.wait_for(">", 2)
        terminal.type("Something long?\r")
        terminal.wait_for("As far as here")
        terminal.type("not seen\x03")
        assert server.exchange(1, PATIENCE_S).gone.wait(PATIENCE_S), "the server works on"
        terminal.wait_for("stopped")
        terminal.wait_for(">", 3)
        terminal.type("\x03")  # at the prompt: it doesn't leave
        terminal.wait_for("Once more")
        terminal.wait_for(">", 4)
        terminal.type("And now?\r")
        terminal.wait_for("Hello, world!", 2)
        terminal.wait_for(">", 5)
        terminal.type("/clear\r")
        terminal.wait_for("A new conversation")
        terminal.wait_for(">", 6)
        terminal.type("Anew?\r")
        terminal.wait_for("Hello, world!", 3)
        terminal.wait_for(">", 7)
        terminal.type("\x04")
        assert terminal.end() == 0
        assert "not seen" not in "\n".join(terminal.lines()), "keys stand in the answer"
    asked = [
        [(message["role"], message["content"]) for message in exchange.body["messages"]]
        for exchange in server.exchanges
    ]
    system, first = ("system", "Be brief."), ("user", "Hello?")
    assert asked[0] == [system, first]
    assert asked[2] == [
        system,
        first,
        ("assistant", "Hello, world!"),
        ("user", "Something long?"),
        ("assistant", "As far as here"),
        ("user", "And now?"),
    ]
    assert asked[3] == [system, ("user", "Anew?")]


def test_questions_that_are_piped_into_a_chat_are_one_conversation(
    tmp_path: Path, server: ProtocolServer
) -> None:
    env = asking(tmp_path, server.url)
    done = run(tmp_path, env, "--chat", "First", given=b"Second\n\nThird\n/exit\nFourth\n")
    assert done.stdout == b"Hello, world!\n" * 3
    assert done.returncode == 0
    assert [m["content"] for m in server.exchanges[2].body["messages"]] == [
        *("First", "Hello, world!", "Second", "Hello, world!", "Third")
    ]


LONG = "\n".join(
    [
        "# A title",
        "",
        "Some **bold** words, `code`, a List<String> and $a\\,b$." + ESCAPES,
        "```python",
        *(f"line_{number} = {number}" for number in range(60)),
        "```",
        *(f"{number}. item {number}" for number in range(1, 30)),
        "",
        "| a | b |",
        "| - | - |",
        "| 1 | 2 |",
        "",
        "The [end](https://example.org).",
    ]
)


def test_a_terminal_shows_markdown_whole_and_once_however_long_it_is(tmp_path: Path) -> None:
    env = scripted(tmp_path, text=LONG, tokens_per_s=600)
    with TerminalProcess("--max-tokens", "9999", "Go.", env=env, cwd=tmp_path) as terminal:
        assert terminal.end() == 0
        lines = terminal.lines()
    shown = "\n".join(lines)
    assert "**" not in shown
    assert "`" not in shown
    assert "bold words, code, a List<String> and $a\\,b$." in shown
    assert "end (https://example.org)" in shown
    assert [line.strip() for line in lines if line.strip().startswith("line_")] == [
        f"line_{number} = {number}" for number in range(60)
    ]
    items = re.findall(r"^ *(\d+) item (\d+)$", shown, re.M)
    assert items == [(str(number), str(number)) for number in range(1, 30)]
    # What the model wrote can move nothing; what is drawn over is the program's own.
    assert b"\x1b]" not in terminal.sent
    assert b"\x1b[2J" not in terminal.sent
    assert b"\x1b[31mred" not in terminal.sent
    assert not re.search(b"\xc2[\x80-\x9f]", terminal.sent)
    assert b"\x1b[?25l" not in terminal.sent.split(b"\x1b[?25h")[-1], "the cursor stays hidden"


@pytest.mark.parametrize(
    ("variables", "arguments"),
    [({"TERM": "dumb"}, ()), ({"NO_COLOR": "1"}, ()), ({}, ("--plain",))],
    ids=["dumb", "no-color", "plain"],
)
def test_elsewhere_it_is_plain_text(
    tmp_path: Path, variables: dict[str, str], arguments: tuple[str, ...]
) -> None:
    env = scripted(tmp_path, variables, text="Some **bold** words.", reasoning="Let me see.")
    with TerminalProcess(*arguments, "Go.", env=env, cwd=tmp_path) as terminal:
        assert terminal.end() == 0
        assert "Some **bold** words." in terminal.lines()
        assert "Let me see." in terminal.lines(), "who looks is shown what it thinks"
        if variables.get("TERM") == "dumb":
            assert b"\x1b" not in terminal.sent


def test_reasoning_is_dim_and_apart_and_the_line_before_it_is_gone(
    tmp_path: Path, server: ProtocolServer
) -> None:
    go_on = threading.Event()

    async def thinking(exchange: Exchange) -> None:
        await exchange.head()
        await asyncio.to_thread(go_on.wait, PATIENCE_S)
        await exchange.event(chunk({"reasoning_content": "Let me see."}))
        await exchange.say("The answer.")
        await exchange.say(None, finish="stop")
        await exchange.event("[DONE]")
        await exchange.end()

    server.when("Go", thinking)
    with TerminalProcess("Go.", env=asking(tmp_path, server.url), cwd=tmp_path) as terminal:
        terminal.wait_for("Reading the question")
        go_on.set()
        assert terminal.end() == 0
        lines = [line for line in terminal.lines() if line]
    assert lines[:2] == ["Let me see.", "The answer."]
    assert b"\x1b[2mLet" in terminal.sent


@pytest.mark.parametrize("arguments", [("{0}", "--system={0}"), ("--chat", "{0}", "--system={0}")])
def test_a_server_is_told_text_whatever_bytes_and_locale_there_are(
    server: ProtocolServer, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    env = asking(tmp_path, server.url, LC_ALL="POSIX", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    given = [os.fsencode(each.format("好")) + b"\xff" for each in arguments if each != "--chat"]
    options = [each for each in arguments if each == "--chat"]
    done = subprocess.run(
        [*command(*options), *given],
        input=b"a\0b\n",
        capture_output=True,
        cwd=tmp_path,
        env=env,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [one["content"] for each in server.exchanges for one in each.body["messages"]]
    assert "好\ufffd" in told[0]
    assert not any("\0" in each for each in told)


def closed_port() -> str:
    with ProtocolServer() as gone:
        return gone.url


@pytest.mark.parametrize(
    ("code", "sentence", "arguments", "variables"),
    [
        (2, "no backend “nowhere”", ("--backend", "nowhere", "Hi"), {}),
        (2, "can’t be used", ("--no-such-thing",), {}),
        (2, "must lie between", ("--temperature", "9", "Hi"), {}),
        (2, "There is no question", (), {}),
        (3, "STEADY_CHAT_TOP_P", ("Hi",), {"STEADY_CHAT_TOP_P": "9"}),
        (3, "设置项", ("Hi",), {"STEADY_CHAT_TOP_P": "9", "LANG": "zh_CN.UTF-8"}),
        (4, "Nothing answers at", ("--backend", "vllm", "Hi"), {}),
        (6, "Shorten it by 1", ("Hiho",), {"STEADY_CHAT_MAX_QUESTION_CHARS": "3"}),
        (7, "cut at the token limit", ("--max-tokens", "1", "Hi"), {}),
        (7, "达到词元上限", ("--language", "zh", "--max-tokens", "1", "Hi"), {}),
        (
            8,
            "There is no model “gone”. Check --model",
            ("--backend", "local", "--model", "/gone", "Hi"),
            {},
        ),
    ],
)
def test_an_exit_code_and_a_sentence_tell_what_went_wrong(
    tmp_path: Path,
    code: int,
    sentence: str,
    arguments: tuple[str, ...],
    variables: dict[str, str],
) -> None:
    env = scripted(tmp_path, text="A long answer.") | variables
    env["STEADY_CHAT_VLLM_BASE_URL"] = closed_port()
    done = run(tmp_path, env, *arguments)
    assert done.returncode == code, done.stderr.decode()
    assert sentence in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert (done.stdout != b"") == (code == 7)


def test_a_key_that_is_refused_has_a_code_of_its_own(
    tmp_path: Path, server: ProtocolServer
) -> None:
    server.key = "secret"
    done = run(tmp_path, asking(tmp_path, server.url), "Hi")
    assert done.returncode == 5
    assert b"key" in done.stderr
    assert b"secret" not in done.stderr


def test_help_names_every_exit_code(tmp_path: Path) -> None:
    done = run(tmp_path, environment(tmp_path, LC_ALL="zh_CN.UTF-8"), "--help")
    assert done.returncode == 0
    told = re.findall(r"^ +(\d+)  .*[\u4e00-\u9fff]", done.stdout.decode(), re.M)
    assert told == [*"012345678", "130", "141"]


def test_a_pipe_is_answered_without_any_user_interface(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "llm", "Hi"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        env=scripted(tmp_path, text="Hello."),
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stdout == b"Hello.\n"
    loaded = set(re.findall(r"\| +([\w.]+)$", done.stderr.decode(), re.M))
    assert "llm.job" in loaded
    assert not loaded & {"streamlit", "ui", "starlette", "rich", "torch", "openai", "sqlalchemy"}


def test_a_program_that_is_told_to_end_stops_the_model(
    tmp_path: Path, server: ProtocolServer
) -> None:
    async def holding(exchange: Exchange) -> None:
        await exchange.head()
        await exchange.say("So far")
        await exchange.hold()

    server.when("Hi", holding)
    with start(tmp_path, asking(tmp_path, server.url), "Hi") as process:
        assert process.stdout is not None
        assert process.stdout.read(6) == b"So far"
        process.terminate()
        assert process.wait(PATIENCE_S) == 143
    assert server.exchange().gone.wait(PATIENCE_S)


@pytest.mark.model
def test_the_embedded_model_answers_at_the_terminal(tmp_path: Path) -> None:
    env = environment(tmp_path, STEADY_CHAT_DATA_DIR=str(model_data_dir()))
    question = "What is the capital of France?"
    done = run(tmp_path, env, "--temperature", "0", "--max-tokens", "40", question)
    assert done.returncode == 0, done.stderr.decode()
    assert "Paris" in done.stdout.decode()


def test_a_terminal_that_the_program_was_not_started_from_is_one_as_well(tmp_path: Path) -> None:
    env = scripted(tmp_path, text="# Good morning\n\nall is **well**")
    with TerminalProcess("hello", env=env, cwd=tmp_path, controlling=False) as terminal:
        terminal.wait_for("all is well")
        assert terminal.end() == 0


def test_what_still_runs_doesnt_hold_up_the_end(tmp_path: Path) -> None:
    """A model that is being loaded has threads in native code that nobody can stop."""
    begin = """
import runpy, threading
threading.Thread(target=threading.Event().wait).start()
runpy.run_module("llm", run_name="__main__", alter_sys=True)
"""
    done = subprocess.run(
        [sys.executable, "-c", begin, "Hi"],
        capture_output=True,
        cwd=tmp_path,
        env=scripted(tmp_path, text="Yes."),
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"Yes.\n")
