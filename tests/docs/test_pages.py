"""Pages lead somewhere, can be read anywhere, and show pictures that exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from tests.docs.pages import ROOT, Page, page, pages

if TYPE_CHECKING:
    from pathlib import Path

PAGES = pytest.mark.parametrize("written", pages(), ids=lambda written: written.name)


@PAGES
def test_links_lead_to_files_and_headings(written: Page) -> None:
    lost: list[str] = []
    for link in written.links:
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = ((ROOT / written.name).parent / name).resolve() if name else ROOT / written.name
        if not target.is_file() or (anchor and anchor not in anchors_of(target)):
            lost.append(link)
    assert lost == []


def anchors_of(target: Path) -> frozenset[str]:
    return page(target.relative_to(ROOT).as_posix()).anchors


@PAGES
def test_page_tells_nothing_of_the_machine_it_was_written_on(written: Page) -> None:
    assert re.findall(r"(?<![\w.])/(?:root|home|tmp|work|usr|Users)/\S*", written.text) == []


@PAGES
def test_lines_can_be_read_without_scrolling(written: Page) -> None:
    long = [
        line
        for line in written.prose.splitlines()
        if len(line) > 110 and not line.startswith(("|", "!["))
    ]
    assert long == []


def test_every_page_is_on_the_map() -> None:
    mapped = set(page("docs/index.md").links)
    names = {written.name.removeprefix("docs/") for written in pages()}
    assert names - {"index.md", "README.md"} <= mapped
    assert "docs/index.md" in page("README.md").links


def test_every_picture_is_shown_and_sound() -> None:
    pictures = sorted(ROOT.glob("docs/diagrams/*.svg"))
    shown = {link for written in pages() for link in written.links if link.endswith(".svg")}
    assert {f"diagrams/{picture.name}" for picture in pictures} == shown
    for picture in pictures:
        root = ET.fromstring(picture.read_text("utf-8"))  # noqa: S314 - our own file
        space = "{http://www.w3.org/2000/svg}"
        assert root.tag == f"{space}svg"
        assert root.findtext(f"{space}title")
        assert root.findtext(f"{space}desc")
        # Scripts and things from elsewhere are not shown where a page is embedded.
        assert not re.search(r"<script|href=|url\((?!#)", picture.read_text("utf-8"))
