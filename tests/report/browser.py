"""Headless Chromium as a test of the page's script."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
IN_BROWSER = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; apt-get install chromium"),
]
DRAWN = """<script>(async () => {
  while (!document.documentElement.dataset.ready) await new Promise(done => setTimeout(done, 20));
  PREPARE;
  const plot = id => { const {data, layout} = document.getElementById(id); return data && {data, layout}; };
  parent.postMessage([PLACE, {plot: plot("plot"), curves: plot("curves"),
    box: document.getElementById("box").textContent}], "*"); })();</script></body>"""
FRAME = """<script>const seen = [];
onmessage = event => {
  seen[event.data[0]] = event.data[1];
  if (Object.keys(seen).length < COUNT) return;
  const out = document.createElement("pre"); out.id = "seen"; out.textContent = JSON.stringify(seen);
  document.body.append(out); };</script>"""


def dumped(folder: Path, path: Path, *options: str):
    """Return the text that a script of the page leaves in the element `seen`."""
    command = [
        str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}/profile",
        "--virtual-time-budget=20000", "--window-size=1300,1000", *options, "--dump-dom", path.as_uri(),
    ]  # fmt: skip
    dom = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    match = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert match, dom[-2000:]
    return json.loads(unescape(match[1]))


def drawn(folder: Path, *pages: str, prepare: str = "", width: int = 1200) -> list[dict]:
    """The data and layout of the pictures of each page, after the script `prepare`."""
    frames = []
    for place, page in enumerate(pages):
        tell = DRAWN.replace("PLACE", str(place)).replace("PREPARE", prepare)
        (folder / f"page-{place}.html").write_text(page.replace("</body>", tell))
        frames.append(
            f'<iframe src="page-{place}.html" style="border:0;width:{width}px;height:900px"></iframe>'
        )
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("COUNT", str(len(pages))) + "".join(frames))
    return dumped(folder, frame)
