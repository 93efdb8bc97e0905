"""chromium.py - a headless Chromium, driven through a pipe by the DevTools protocol.

Nothing but Chromium is needed: no driver, no package of any other language.  The protocol is JSON,
each message closed by a NUL; commands have ids, everything else is an event."""
import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

TIMEOUT_S = 60


def program():
    return shutil.which("chromium") or shutil.which("chromium-browser") or \
        shutil.which("google-chrome")


class Browser:
    """One browser with one page."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        self.events, self.buffer, self.last_id, self.session = [], b"", 0, None
        theirs_in, self.out = self.pipe()
        self.inp, theirs_out = self.pipe()

        def hand_over():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self.child = subprocess.Popen(
            [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-dev-shm-usage", "--disable-background-networking", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=hand_over, pass_fds=(3, 4), start_new_session=True,
            env={**os.environ, "HOME": self.folder, "TMPDIR": self.folder})
        os.close(theirs_in)
        os.close(theirs_out)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    @staticmethod
    def pipe():
        """Read end and write end, above the numbers that the child wants, not handed on."""
        ends = []
        for end in os.pipe():
            ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 16))
            os.close(end)
        return ends

    def close(self):
        try:
            os.killpg(self.child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.child.wait()
        os.close(self.inp)
        os.close(self.out)
        end = time.monotonic() + TIMEOUT_S
        while os.path.exists(self.folder) and time.monotonic() < end:  # its helpers are still dying
            shutil.rmtree(self.folder, ignore_errors=True)

    def receive(self, end):
        while b"\0" not in self.buffer:
            if not select.select([self.inp], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self.inp, 1 << 20)
            if not data:
                raise ConnectionError("Chromium has ended")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        end = time.monotonic() + TIMEOUT_S
        while True:
            got = self.receive(end)
            if got.get("id") == self.last_id:
                if "error" in got:
                    raise RuntimeError(f"{method}: {got['error']}")
                return got["result"]
            self.events.append(got)

    def wait_for(self, event):
        end = time.monotonic() + TIMEOUT_S
        while not any(e.get("method") == event for e in self.events):
            self.events.append(self.receive(end))

    def open(self, path, width=1280, height=900):
        self.resize(width, height)
        self.events = []
        self.call("Page.navigate", url=f"file://{path}")
        self.wait_for("Page.loadEventFired")

    def resize(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def scheme(self, name, medium=""):
        """What the reader prefers, "light" or "dark"; on the screen, or in "print"."""
        self.call("Emulation.setEmulatedMedia", media=medium,
                  features=[{"name": "prefers-color-scheme", "value": name}])

    def evaluate(self, expression):
        """The value of an expression of JavaScript, waited for if it is a promise."""
        got = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                        awaitPromise=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{expression}: {got['exceptionDetails']}")
        return got["result"].get("value")

    def mouse(self, kind, x, y):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, clickCount=1,
                  button="none" if kind == "mouseMoved" else "left",
                  buttons=0 if kind != "mousePressed" else 1)

    def click(self, x, y):
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def screenshot(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events
                if e.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What the console would show in red or yellow."""
        return [e["params"] for e in self.events
                if e.get("method") == "Runtime.exceptionThrown"
                or (e.get("method") == "Log.entryAdded"
                    and e["params"]["entry"]["level"] in ("error", "warning"))
                or (e.get("method") == "Runtime.consoleAPICalled"
                    and e["params"]["type"] in ("error", "warning", "assert"))]
