"""Links of pages that Sphinx does not read: relative ones lead to files and headings, the others are well-formed."""

import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "paper/paper.md")),
    *sorted(page for folder in ("benchmarks", "experiments") for page in (ROOT / folder).rglob("*.md")),
]
# [text](target "title") and ![text](target), [name]: target, and the same in HTML
INLINE = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
BY_NAME = re.compile(r"^\[[^\]^]+\]:\s*(\S+)", re.MULTILINE)
IN_HTML = re.compile(r"<(?:a|img)\b[^>]*?\b(?:href|src)=\"([^\"]+)\"")
FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
HEADING = re.compile(r"^(#{1,6})\s+(.+?)\s*#*\s*$", re.MULTILINE)
GIVEN = re.compile(r"^\(([\w-]+)\)=|\b(?:id|name)=\"([\w-]+)\"", re.MULTILINE)
SCHEMES = {"https", "http", "mailto"}
# A name of another host is letters, digits, dots and hyphens, with a dot somewhere.
HOST = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+", re.IGNORECASE)


def prose(page):
    """A page without its code, in which brackets mean something else."""
    return CODE.sub("", FENCE.sub("", page.read_text(encoding="utf-8")))


def links(page):
    text = prose(page)
    return [target for pattern in (INLINE, BY_NAME, IN_HTML) for target in pattern.findall(text)]


def anchors(page):
    """Return the targets after the # of a link: headings as the site and GitHub spell them, and explicit names."""
    text = page.read_text(encoding="utf-8")
    counts = Counter()
    found = {one or other for one, other in GIVEN.findall(text)}
    for _, heading in HEADING.findall(FENCE.sub("", text)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower().strip().replace("`", "")).replace(" ", "-")
        found.add(f"{slug}-{counts[slug]}" if counts[slug] else slug)
        counts[slug] += 1
    return found


def trouble(page, link):
    """Return what is wrong with a link; None if it is right."""
    parts = urlsplit(link)
    if parts.scheme or link.startswith("//"):
        if parts.scheme not in SCHEMES:
            return f"{link}: no scheme that is known"
        is_right = "@" in parts.path if parts.scheme == "mailto" else HOST.fullmatch(parts.hostname or "")
        return None if is_right else f"{link}: no host"
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.exists():
        return f"{link}: no such file"
    if parts.fragment and target.suffix == ".md" and unquote(parts.fragment) not in anchors(target):
        return f"{link}: no such heading"
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    assert [found for link in links(page) if (found := trouble(page, link)) is not None] == []


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"(?<![\w.])@([A-Za-z]\w+)", prose(ROOT / "paper" / "paper.md")))
    assert cited == set(re.findall(r"^@\w+\{([^,\s]+),", (ROOT / "paper" / "paper.bib").read_text(), re.MULTILINE))


def test_broken_links_are_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One: `two` [three](there.md)\n\n## Again\n\n## Again\n\n(here)=\n\n"
        "[a](there.md) [b](nowhere.md) [c](#one-two-three) [d](#again-1) [e](#again-2) [f](#here) `[g](gone.md)`\n"
        '[h](https://example.org/x?y#z) [i](https:///x) [j](htps://example.org) ![k](no.png "title")\n\n'
        '```sh\n[l](gone.md)\n```\n\n[m]: gone.md\n<img src="lost.png">\n',
        encoding="utf-8",
    )
    (tmp_path / "there.md").write_text("nothing", encoding="utf-8")
    found = [each for link in links(page) if (each := trouble(page, link)) is not None]
    assert found == [
        "nowhere.md: no such file",
        "#again-2: no such heading",
        "https:///x: no host",
        "htps://example.org: no scheme that is known",
        "no.png: no such file",
        "gone.md: no such file",
        "lost.png: no such file",
    ]


def test_the_pages_have_links():
    assert sum(len(links(page)) for page in PAGES) > 50
