"""A headless Chromium, driven over a pipe by the DevTools protocol: no port, no driver, no package."""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
    "--remote-debugging-pipe",
)
PATIENCE = 120  # seconds; the machine may be busy with other things


class Page:
    """One page; `errors` and `requests` are all that it logged and asked for."""

    def __init__(self, to_browser, from_browser):
        self._to, self._from = to_browser, from_browser
        self._buffer, self._number, self._session = b"", 0, None
        self.errors, self.requests, self._loads = [], [], 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method, **parameters):
        """Send a command and wait for its answer; events that come before it are noted."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            data = os.read(self._from, 1 << 20)
            assert data, "the browser has gone"
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def _note(self, event):
        method, found = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        elif method == "Page.loadEventFired":
            self._loads += 1
        elif method == "Runtime.exceptionThrown":
            self.errors.append(found["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning", "assert"):
            self.errors.append(str(found["args"]))
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
            self.errors.append(found["entry"]["text"])

    def open(self, path, width=1280, height=900):
        """Show a file in a window of this size."""
        self.resize(width, height)
        before = self._loads
        self.call("Page.navigate", url=Path(path).as_uri())
        while self._loads == before:
            self._note(self._next())
        # Before something has been painted, the mouse does nothing.
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def resize(self, width, height, mobile=False):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )

    def media(self, medium="", **features):
        """Show the page as for print, or for those who like it dark."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.call("Emulation.setEmulatedMedia", media=medium, features=named)

    def run(self, code):
        """The value of a JavaScript expression, or what it promises."""
        found = self.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def click(self, selector):
        """Press the mouse in the middle of an element."""
        element = f"document.querySelector({selector!r})"
        self.run(f"{element}.scrollIntoView({{block: 'center', inline: 'center', behavior: 'instant'}})")
        box = self.run(f"{element}.getBoundingClientRect().toJSON()")
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, text=""):
        """Press a key on whatever has the focus."""
        code = {"Enter": 13, "Tab": 9, " ": 32}[key]
        options = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **options)
        self.call("Input.dispatchKeyEvent", type="keyUp", **options)

    def screenshot(self, path, whole=False):
        """Keep what is seen, or the whole page, as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(found["data"]))

    def pdf(self, path):
        """Print the page."""
        found = self.call("Page.printToPDF", preferCSSPageSize=True, printBackground=True)
        Path(path).write_bytes(base64.b64decode(found["data"]))


@contextlib.contextmanager
def browser():
    """A browser with a profile of its own, which is gone afterwards."""
    (for_child, to_browser), (from_browser, of_child) = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = _start(for_child, of_child, profile)
        try:
            yield Page(to_browser, from_browser)
        finally:
            os.close(to_browser)
            os.close(from_browser)
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _start(reading, writing, profile):
    """The protocol wants file descriptors 3 and 4, which a shell can give; high ones are not in its way."""
    high = [fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in (reading, writing)]
    redirected = f'exec "$@" 3<&{high[0]} 4>&{high[1]}'
    process = subprocess.Popen(
        ["bash", "-c", redirected, "bash", PROGRAM, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=high,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in (reading, writing, *high):
        os.close(end)
    return process
