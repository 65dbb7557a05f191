"""The picture of the page in README.md and on the start page: `gpsift demo --html`, seen in chromium.

python -m pip install -e '.[browser]' pillow
python docs/page_picture.py docs/page.png
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from io import BytesIO
from pathlib import Path

# What is shown of the page, from top to bottom: its first screen.
SECTIONS = ("#answer",)
WIDTH, SHOWN_WIDTH, COLOURS = 1000, 820, 64


def sections_seen(page: Path) -> list[bytes]:
    """A picture of each section, as wide as the window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900})
        tab.goto(page.as_uri())
        tab.wait_for_load_state("networkidle")
        tab.wait_for_timeout(3000)  # until the curves are drawn
        boxes = [tab.locator(section).bounding_box() for section in SECTIONS]
        clips = [{"x": 0, "y": box["y"] - 10, "width": WIDTH, "height": box["height"] + 20} for box in boxes if box]
        clips[0] |= {"y": 0, "height": clips[0]["y"] + clips[0]["height"]}  # with the title above
        return [tab.screenshot(full_page=True, clip=clip) for clip in clips]


def stacked(pictures: list[bytes], path: Path) -> None:
    """One picture of all, small enough for a README."""
    from PIL import Image

    parts = [Image.open(BytesIO(picture)).convert("RGB") for picture in pictures]
    whole = Image.new("RGB", (WIDTH, sum(part.height for part in parts)))
    below = 0
    for part in parts:
        whole.paste(part, (0, below))
        below += part.height
    shown = whole.resize((SHOWN_WIDTH, whole.height * SHOWN_WIDTH // WIDTH), Image.Resampling.LANCZOS)
    shown.quantize(COLOURS).save(path, optimize=True)


def main() -> None:
    """Write the picture into the file that is named."""
    target = Path(sys.argv[1]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "demo.html"
        subprocess.run([sys.executable, "-m", "gpsift", "demo", "--html", str(page), "--quiet"], cwd=folder, check=True)
        stacked(sections_seen(page), target)


if __name__ == "__main__":
    main()
