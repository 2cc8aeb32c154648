"""Conversations carried from one person to the next in a real browser, under a Chinese name."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.chat_page import LIMIT_MS, ChatPage
from tests.browser.conftest import ROOT, StartServer
from tests.test_archive import chatgpt

pytestmark = pytest.mark.browser


def start(streamlit_server: StartServer) -> str:
    return streamlit_server(ROOT / "streamlit_app.py", env={"STEADY_CHAT_BACKENDS": "scripted"})


def opened(browser: Browser, app: str, locale: str) -> Page:
    """The page of all conversations."""
    page = browser.new_context(locale=locale, accept_downloads=True).new_page()
    page.set_default_timeout(LIMIT_MS)
    page.goto(f"{app}/conversations")
    page.get_by_test_id("stFileUploader").wait_for()
    return page


def upload(page: Page, button: str, *files: Path) -> None:
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(list(files))
    page.get_by_role("button", name=re.compile(button)).click()


def test_what_one_app_gives_out_the_next_takes_in(
    chromium: Browser, streamlit_server: StartServer, tmp_path: Path, artifacts: Path
) -> None:
    app = start(streamlit_server)
    chat = ChatPage.open(chromium, app, locale="zh-CN")
    chat.ask("如何做饭？")
    chat.wait_until_done()
    chat.close()
    page = opened(chromium, app, "zh-CN")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="全部内容（JSON）").click()
    name = downloading.value.suggested_filename
    assert re.fullmatch(r"对话-\d{4}-\d\d-\d\d\.json", name)
    downloading.value.save_as(tmp_path / name)
    with page.expect_download() as downloading:
        page.get_by_role("button", name="便于阅读（Markdown 压缩包）").click()
    assert re.fullmatch(r"对话-\d{4}-\d\d-\d\d\.zip", downloading.value.suggested_filename)
    downloading.value.save_as(tmp_path / "read.zip")
    with zipfile.ZipFile(tmp_path / "read.zip") as made:
        assert made.namelist() == ["如何做饭？.md"]

    upload(page, "导入 1 个文件", tmp_path / name)
    expect(page.get_by_text("没有导入新对话 · 1 个已经存在")).to_be_visible()
    page.context.close()

    page = opened(chromium, start(streamlit_server), "zh-CN")
    upload(page, "导入 1 个文件", tmp_path / name)
    expect(page.get_by_text("导入了 1 个对话")).to_be_visible()
    expect(page.get_by_text("共 1 个对话")).to_be_visible()
    page.screenshot(path=artifacts / "archive-imported.png", full_page=True)
    page.context.close()


def test_what_couldnt_be_read_is_said_row_by_row(
    chromium: Browser, streamlit_server: StartServer, tmp_path: Path, artifacts: Path
) -> None:
    entries: list[object] = [*chatgpt("a"), {"mapping": 7, "title": "<b>坏的*</b>"}, *chatgpt("b")]
    (tmp_path / "导出_1_.json").write_text(json.dumps(entries), encoding="utf-8")
    (tmp_path / "photo.json").write_bytes(b"\x89PNG")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as made:
        made.writestr("conversations.json", json.dumps(chatgpt("c")))
    (tmp_path / "export.zip").write_bytes(packed.getvalue())
    page = opened(chromium, start(streamlit_server), "en-US")
    upload(page, "Import 3 files", *sorted(tmp_path.glob("*.*")))
    report = page.get_by_test_id("stAlert")
    expect(report).to_have_count(3)
    expect(report.filter(has_text="导出_1_.json")).to_contain_text(
        "2 conversations came in · 1 couldn’t be read"
    )
    expect(report.filter(has_text="photo.json")).to_contain_text("no conversations in this file")
    expect(report.filter(has_text="export.zip")).to_contain_text("1 conversation came in")
    row = page.locator(".steady-table tbody tr")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("导出_1_.json · 2")
    expect(row).to_contain_text("<b>坏的*</b>")
    expect(page.get_by_text("3 conversations, with their")).to_be_visible()
    page.screenshot(path=artifacts / "archive-report.png", full_page=True)
    page.get_by_role("button", name="Close this report").click()
    expect(report).to_have_count(0)
    page.context.close()
