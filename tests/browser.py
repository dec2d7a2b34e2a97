"""A real browser without a window, driven over its debugging pipe. The tests of pages share it.

The protocol is documented at https://chromedevtools.github.io/devtools-protocol/.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

# the files 3 and 4 of a process are a notion of POSIX
fcntl = pytest.importorskip("fcntl")

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))),
    None,
)
needs_browser = pytest.mark.skipif(
    PROGRAM is None, reason="needs chromium or google-chrome on PATH"
)
FLAGS = """
    --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars
    --disable-background-networking --disable-component-update --disable-sync
    --disable-dev-shm-usage --remote-debugging-pipe --window-size=1300,1000
"""
# The browser reads commands from file 3 and writes answers to file 4.
STARTER = """
import os, sys
read, write, *command = sys.argv[1:]
os.dup2(int(read), 3)
os.dup2(int(write), 4)
os.execv(command[0], command)
"""
# the key codes of Windows, which the protocol takes on every system
KEYS = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "a": 65}
CTRL, SHIFT = 2, 8
PATIENCE = 60.0


class Browser:
    """A process of the browser. `with Browser(folder) as browser` ends it."""

    def __init__(self, folder: Path) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        # numbers that the starter does not overwrite when it makes 3 and 4
        handed = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
        command = [PROGRAM, *FLAGS.split(), f"--user-data-dir={folder / 'profile'}"]
        self._process = subprocess.Popen(
            [sys.executable, "-c", STARTER, *map(str, handed), *command],
            pass_fds=handed,
            stderr=subprocess.DEVNULL,
        )
        for fd in (theirs_in, theirs_out, *handed):
            os.close(fd)
        self._in, self._out = ours_in, ours_out
        self._rest = b""
        self._number = 0
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.call("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._in)
        os.close(self._out)

    def page(self, width=1100, height=900):
        """Open a new page of a size."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        return page

    def call(self, method, session=None, **params):
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        message |= {"sessionId": session} if session else {}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]
            self.events.append(found)

    def _read(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._rest:
            ready = select.select([self._in], [], [], max(0, end - time.monotonic()))[0]
            assert ready, "the browser did not answer in time"
            data = os.read(self._in, 1 << 20)
            assert data, "the browser has ended"
            self._rest += data
        found, _, self._rest = self._rest.partition(b"\0")
        return json.loads(found)


class Page:
    """A page of the browser."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser = browser
        self.session = session

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def open(self, address):
        """Open an address and wait until everything is loaded."""
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def run(self, script):
        """Return what a script returns; it may await."""
        wrapped = f"(async () => {{ {script} }})()"
        found = self.call(
            "Runtime.evaluate", expression=wrapped, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def wait(self, condition, seconds=20.0):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.run(f"return Boolean({condition});"):
            assert time.monotonic() < end, f"it did not come true: {condition}"
            time.sleep(0.05)

    def text(self, choice):
        """Return the text of the first element that a selector finds."""
        return self.run(f"return document.querySelector({json.dumps(choice)}).textContent;")

    def texts(self, choice):
        return self.run(
            f"return [...document.querySelectorAll({json.dumps(choice)})]"
            ".map((one) => one.textContent);"
        )

    def type(self, text):
        """Type a text where the focus is."""
        self.call("Input.insertText", text=text)

    def press(self, key, modifiers=0):
        """Press and release a key."""
        code = f"Key{key.upper()}" if len(key) == 1 else key
        about = dict(key=key, code=code, modifiers=modifiers, windowsVirtualKeyCode=KEYS[key])
        # a key that writes has a text; Enter must have one to press a button
        text = {"text": "\r"} if key == "Enter" and not modifiers else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **about, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def point(self, choice, number=0):
        """Move the mouse to an element."""
        place = self.run(
            f"const one = document.querySelectorAll({json.dumps(choice)})[{number}];"
            "one.scrollIntoView({ block: 'center', behavior: 'instant' });"
            # a text that fills several lines has a box in each of them
            "const { x, y, width, height } = one.getClientRects()[0];"
            "return { x: x + width / 2, y: y + height / 2 };"
        )
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **place)
        return place

    def click(self, choice, number=0):
        """Click at an element with the mouse."""
        place = self.point(choice, number)
        for kind in ("mousePressed", "mouseReleased"):
            button = dict(button="left", clickCount=1)
            self.call("Input.dispatchMouseEvent", type=kind, **place, **button)

    def tap(self, choice, number=0):
        """Tap an element with a finger."""
        place = self.point(choice, number)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[place])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def resize(self, width, height=900, mobile=False):
        """Give the page a size; `mobile` makes it a phone with a touch screen."""
        size = dict(width=width, height=height, deviceScaleFactor=2 if mobile else 1)
        self.call("Emulation.setDeviceMetricsOverride", **size, mobile=mobile)
        self.call("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def prefer(self, scheme):
        """Let the reader prefer a light or a dark scheme."""
        feature = dict(name="prefers-color-scheme", value=scheme)
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def screenshot(self, file):
        """Write a picture of the whole page."""
        found = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        Path(file).write_bytes(base64.b64decode(found["data"]))

    def errors(self):
        """Return what the console has as errors or warnings, since the page was made."""
        self.call("Runtime.evaluate", expression="0")
        return [found for event in self._events() if (found := _error(event))]

    def loaded(self):
        """Return the addresses that the page has asked for."""
        sent = [event for event in self._events() if event["method"] == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in sent]

    def _events(self):
        return [event for event in self.browser.events if event.get("sessionId") == self.session]


def _error(event):
    """Return the text of an error of the console; None for other events."""
    params = event.get("params", {})
    if event["method"] == "Runtime.exceptionThrown":
        details = params["exceptionDetails"]
        return details.get("exception", {}).get("description") or details["text"]
    if event["method"] == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
        return str(params["args"])
    if event["method"] == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
        return params["entry"]["text"]
    return None
