"""A headless Chromium, driven over the WebDriver protocol by what Python has anyway: no package from anywhere.

Debian's `chromium` and `chromium-driver` are enough. Pages are opened from disk, as a reader of a report opens them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)

NUMBERS = """
return [...document.querySelectorAll('[data-key]')].map(e => [e.dataset.key, e.dataset.round, e.textContent]);
"""
UNMARKED = r"""
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
while (walk.nextNode()) {
  const node = walk.currentNode;
  if (/\d/.test(node.data) && !node.parentElement.closest('[data-key], .ticks, script')) found.push(node.data);
}
return found;
"""
TOO_WIDE = """
const most = document.documentElement.clientWidth, found = [];
if (document.documentElement.scrollWidth > most) found.push('page ' + document.documentElement.scrollWidth);
for (const e of document.querySelectorAll('body *')) {
  const box = e.getBoundingClientRect();
  const inside = e.closest('.scroll, .skip, thead') || e.closest('svg') && !e.matches('svg');
  if (box.width && !inside && (box.right > most + 0.5 || box.left < -0.5)) found.push(e.tagName + ' ' + box.right);
}
return found;
"""
CUT_OFF = """
const found = [];
for (const svg of document.querySelectorAll('svg[role=img]')) {
  const frame = svg.getBoundingClientRect();
  if (!frame.width) continue;
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBoundingClientRect();
    const out = box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1;
    if (out) found.push(text.textContent);
  }
}
return found;
"""
PALE = """
const parse = c => c.match(/[\\d.]+/g).map(Number);
const straight = v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
const shine = c => { const [r, g, b] = parse(c).map(straight);
  return .2126 * r + .7152 * g + .0722 * b; };
const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor, p = parse(c);
  if (p.length < 4 || p[3] > .99) return c; } return getComputedStyle(document.documentElement).backgroundColor; };
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !e.getClientRects().length || e.closest('script, desc, title')) continue;
  const style = getComputedStyle(e), ink = e.closest('svg') ? style.fill : style.color;
  const [a, b] = [shine(ink), shine(behind(e))].sort((x, y) => y - x);
  if ((a + .05) / (b + .05) < 4.5) found.push([walk.currentNode.data.trim().slice(0, 40), ink, behind(e)]);
}
return found;
"""
SHOWN = """
return [...document.querySelectorAll('svg[role=img]')].filter(e => e.getBoundingClientRect().height > 100)
  .map(e => e.classList[1]);
"""


def missing() -> str:
    """What is not installed, in words; empty when all is there."""
    lacking = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return " and ".join(lacking)


LEFT_OUT = (
    f"LEFT OUT: the report was not tested in a real browser, {missing()} missing. "
    "Install Debian's chromium and chromium-driver."
)


class Browser:
    """One window. Use it as a context; `run` runs JavaScript in the page, `cdp` a DevTools command."""

    def __init__(self, folder: Path) -> None:
        self._driver = subprocess.Popen(
            [shutil.which("chromedriver") or "chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            self._base = f"http://127.0.0.1:{self._port()}/session"
            options = {
                "browserName": "chrome",
                "goog:chromeOptions": {
                    "binary": shutil.which("chromium"),
                    "args": [*FLAGS, f"--user-data-dir={folder}"],
                },
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            answer = self._ask("POST", "", {"capabilities": {"alwaysMatch": options}})
            self._base += f"/{answer['sessionId']}"
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self, path: Path, *, width: int = 1100, height: int = 900) -> None:
        """Show the file in a page of that size, in CSS pixels."""
        self.cdp(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.log()
        self._ask("POST", "/url", {"url": path.resolve().as_uri()})

    def run(self, script: str, *arguments: Any) -> Any:
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def log(self) -> list[dict[str, Any]]:
        """What the console got since last asked."""
        return list(self._ask("POST", "/se/log", {"type": "browser"}))

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        shot = self.cdp("Page.captureScreenshot", captureBeyondViewport=whole, **self._clip(whole))
        path.write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path: Path) -> None:
        """The page as it is printed on A4."""
        printed = self.cdp("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(printed["data"]))

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError, AttributeError):
            self._ask("DELETE", "")
        self._driver.terminate()
        self._driver.wait(timeout=20)
        if self._driver.stdout:
            self._driver.stdout.close()

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.run("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        return {"clip": {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}}

    def _port(self) -> int:
        assert self._driver.stdout is not None
        until = time.monotonic() + 30
        while time.monotonic() < until:
            line = self._driver.stdout.readline()
            if "was started successfully on port" in line:
                return int(line.rstrip().rstrip(".").rsplit(" ", 1)[1])
        raise RuntimeError("chromedriver did not start")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            self._base + path, data=data, method=method, headers={"Content-Type": "application/json"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # the driver is on this machine
        try:
            with opener.open(request, timeout=60) as answer:
                return json.loads(answer.read())["value"]
        except urllib.error.HTTPError as problem:
            with problem:
                raise RuntimeError(problem.read().decode()[:2000]) from None


def press(browser, key):
    text = "\r" if key == "Enter" else ""
    code = {"Tab": 9, "Enter": 13}[key]
    for kind in ("keyDown", "keyUp"):
        browser.cdp("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, text=text)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if missing():
        (pytest.fail if os.environ.get("BAYESDP_BROWSER") == "required" else pytest.skip)(LEFT_OUT)
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened
