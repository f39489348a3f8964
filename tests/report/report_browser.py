"""A headless Chromium, driven over the WebDriver protocol by what Python has anyway: no package from anywhere.

Debian's `chromium` and `chromium-driver` are enough. Pages are opened from disk, as a reader of a report opens them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

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


def missing() -> str:
    """What is not installed, in words; empty when all is there."""
    lacking = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return " and ".join(lacking)


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
