"""Do work in one process at a time, under a leadership that a `bellwether` process holds.

Start `bellwether run ELECTION --for-clients --http unix:PATH` beside this program, and give :func:`lead` the same address.

A leadership is believed in until a deadline on this machine's own boot-time clock, which goes on while the machine is suspended. The
deadline counts from before the request whose answer named it, so it needs no other clock. `docs/clients.md` has the protocol.

One thread, a daemon, asks `bellwether` again and again. The work runs in the thread of whoever calls :func:`lead`.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Callable, Optional, TypeVar

__all__ = ["Campaign", "Leadership", "Refused", "lead"]

T = TypeVar("T")

# Between two attempts to reach `bellwether`, in seconds: the first pause, and the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
# How long a connection may take to open, and how much longer than promised an answer may take, in seconds.
_PATIENCE = 5.0


class Refused(Exception):
    """`bellwether` does not let this client campaign; asking again would not help."""


def boot_ns() -> int:
    """The boot-time clock, which also counts while the machine is suspended."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Leadership:
    """The right to work, for one epoch."""

    def __init__(self, epoch: int, campaign_id: str, deadline: int, condition: threading.Condition):
        self.epoch = epoch
        """The fencing token: give it to whatever the work writes to, and let that refuse smaller ones."""
        self.ended: Optional[str] = None
        """Why it ended, as far as that is known."""
        self._id = campaign_id
        self._is_taken = False
        self._deadline = deadline
        self._changed = condition

    def holds(self) -> bool:
        """Whether the work may go on. Reads the clock, and asks nobody. Once it has said no, it says no for ever."""
        # The work stops then: an answer that comes later must not make it look as if it had stopped by itself.
        if self.ended is None and boot_ns() >= self._deadline:
            self._end("deadline")
        return self.ended is None

    def remaining(self) -> float:
        """Seconds until the deadline, which every renewal moves."""
        return max(0, self._deadline - boot_ns()) / 1e9 if self.ended is None else 0.0

    @property
    def deadline_boot_ns(self) -> int:
        """The deadline, on the boot-time clock."""
        return self._deadline

    def wait(self, seconds: float) -> bool:
        """Sleeps for so long, or until the leadership is over. Whether the work may go on."""
        until = boot_ns() + int(seconds * 1e9)
        with self._changed:
            while self.holds() and (left := until - boot_ns()) > 0:
                self._changed.wait(min(left / 1e9, self.remaining()))
        return self.holds()

    def _extend(self, deadline: int) -> None:
        self._deadline = max(self._deadline, deadline)

    def _end(self, reason: str) -> None:
        self.ended = self.ended or reason


class Campaign:
    """Campaigns until it is closed. Use it in a `with` statement, or call :meth:`close`."""

    def __init__(self, address: str, token: Optional[str] = None, ends_with_process: bool = True):
        """`address` is that of `--http`: `unix:PATH`, `http://HOST:PORT` or `https://HOST:PORT`; the latter two need the token.

        `ends_with_process`: when this process has ended, so has its work. Say no if other processes do the work, and outlive this one.
        """
        self._server = _Server(address, token)
        self._body = json.dumps({"ends_with_process": ends_with_process})
        self._changed = threading.Condition()
        self._leadership: Optional[Leadership] = None
        self._failure: Optional[Exception] = None
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="bellwether", daemon=True)
        self._thread.start()

    def is_leader(self) -> bool:
        """Whether this process leads. Reads the clock, and asks nobody."""
        leadership = self._leadership
        return leadership is not None and leadership.holds()

    @property
    def epoch(self) -> Optional[int]:
        """The epoch of the present leadership."""
        leadership = self._leadership
        return leadership.epoch if leadership is not None and leadership.holds() else None

    def lead(self, work: Callable[[Leadership], T]) -> T:
        """Calls `work` with every leadership, until it returns while the leadership still holds; returns what it returned.

        `work` has to return soon after `leadership.holds()` has become false: only then may the next one lead before the deadline.
        """
        while True:
            leadership = self.wait_for_leadership()
            try:
                result = work(leadership)
            except BaseException:
                self.finished(leadership)
                raise
            held = leadership.holds()
            self.finished(leadership)
            if held:
                return result

    def wait_for_leadership(self, timeout: Optional[float] = None) -> Leadership:
        """Waits until this process leads. Whoever calls this also calls :meth:`finished`; :meth:`lead` does both."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while True:
                if self._failure is not None:
                    raise self._failure
                if self._closed:
                    raise RuntimeError("the campaign is closed")
                leadership = self._leadership
                if leadership is not None and leadership.holds():
                    leadership._is_taken = True
                    return leadership
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("this process does not lead")
                self._changed.wait(left)

    def finished(self, leadership: Leadership) -> None:
        """Says that the work has stopped: the next one may lead at once. Call it only when nothing of the work is left."""
        with self._changed:
            leadership._end("finished")
            if self._leadership is leadership:
                self._leadership = None
            self._changed.notify_all()
        self._server.say_finished(leadership._id)

    def close(self) -> None:
        """Campaigns no more. The work has to have stopped."""
        with self._changed:
            self._closed = True
            leadership, self._leadership = self._leadership, None
            if leadership is not None:
                leadership._end("closed")
            self._changed.notify_all()
        self._server.hang_up()
        self._thread.join()

    def __enter__(self) -> "Campaign":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What follows runs in the thread that asks.

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._closed:
            try:
                self._campaign()
                pause = _FIRST_PAUSE
            except (OSError, http.client.HTTPException, ValueError):
                with self._changed:
                    self._changed.wait_for(lambda: self._closed, pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except Exception as failure:
                # Refused, or a mistake in here: whoever waits has to hear of it.
                with self._changed:
                    self._failure = failure
                    self._changed.notify_all()
                return

    def _campaign(self) -> None:
        """One campaign: from the first request until its work, if there was any, has stopped."""
        campaign_id: Optional[str] = None
        mine: Optional[Leadership] = None
        pause = _FIRST_PAUSE
        try:
            while not self._closed and not self._is_finished(mine):
                path = "/campaign" if campaign_id is None else f"/campaign/{campaign_id}"
                # Before the request: what the answer says counts from when the server had received it.
                asked = boot_ns()
                try:
                    for line in self._server.ask(path, self._body if campaign_id is None else ""):
                        campaign_id = line["campaign"]
                        mine = self._hear(line, asked, mine)
                        if self._closed or self._is_finished(mine):
                            return
                    pause = _FIRST_PAUSE
                except _Unknown:
                    # It was given up, or `bellwether` is another process by now.
                    if mine is None:
                        return
                    with self._changed:
                        mine._end("unknown")
                        self._changed.notify_all()
                        self._changed.wait_for(lambda: self._closed or self._is_finished(mine))
                except (OSError, http.client.HTTPException, ValueError):
                    if campaign_id is None:
                        raise
                    with self._changed:
                        self._changed.wait_for(lambda: self._closed or self._is_finished(mine), pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
        finally:
            if campaign_id is not None and (self._closed or (mine is not None and not mine._is_taken)):
                self._server.say_finished(campaign_id)

    def _is_finished(self, mine: Optional[Leadership]) -> bool:
        if mine is None:
            return False
        with self._changed:
            # Over before anybody took it: there is no work that could say so.
            if self._leadership is mine and not mine._is_taken and not mine.holds():
                self._leadership = None
            return self._leadership is not mine

    def _hear(self, line: dict, asked: int, mine: Optional[Leadership]) -> Optional[Leadership]:
        with self._changed:
            if "ended" in line:
                if mine is not None:
                    mine._end(line["ended"])
            elif line["valid_ms"] > 0:
                deadline = asked + line["valid_ms"] * 1_000_000
                if mine is None:
                    mine = self._leadership = Leadership(line["epoch"], line["campaign"], deadline, self._changed)
                mine._extend(deadline)
            self._changed.notify_all()
            return mine


def lead(address: str, work: Callable[[Leadership], T], token: Optional[str] = None) -> T:
    """Campaigns, and calls `work` with every leadership until it returns while the leadership still holds. See :meth:`Campaign.lead`."""
    with Campaign(address, token) as campaign:
        return campaign.lead(work)


class _Unknown(Exception):
    """There is no such campaign any more."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str):
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout if isinstance(self.timeout, (int, float)) else _PATIENCE)
        self.sock.connect(self._path)


class _Server:
    """Requests to `bellwether`: those of the thread that asks on one connection, all others on one each."""

    def __init__(self, address: str, token: Optional[str]):
        self._address = address
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._patience = _PATIENCE
        self._connection: Optional[http.client.HTTPConnection] = None
        self._socket: Optional[socket.socket] = None
        # A mistake in the address is told at once.
        self._open()

    def _open(self) -> http.client.HTTPConnection:
        if self._address.startswith("unix:"):
            return _UnixConnection(self._address[len("unix:"):])
        url = urllib.parse.urlsplit(self._address)
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.netloc, timeout=_PATIENCE, context=ssl.create_default_context())
        if url.scheme == "http":
            return http.client.HTTPConnection(url.netloc, timeout=_PATIENCE)
        raise ValueError(f"{self._address!r} is no address of --http: write unix:PATH, http://HOST:PORT or https://HOST:PORT")

    def ask(self, path: str, body: str):
        """The lines of an answer, as they come. For the thread that asks."""
        connection, self._connection = self._connection or self._open(), None
        try:
            if connection.sock is None:
                connection.connect()
            self._socket = connection.sock
            self._socket.settimeout(self._patience)
            connection.request("POST", path, body, self._headers)
            response = connection.getresponse()
            if response.status != 200:
                self._fail(response)
            while line := response.readline():
                line = json.loads(line)
                self._patience = _PATIENCE + line["again_ms"] / 1e3
                yield line
            if response.isclosed():
                # To its end: the next request may use the same connection.
                self._connection = connection
        finally:
            # Also when nobody wants the rest of the answer.
            if self._connection is None:
                connection.close()

    def say_finished(self, campaign_id: str) -> None:
        """Once: if it does not arrive, the leadership ends at its deadline."""
        try:
            connection = self._open()
            connection.request("DELETE", f"/campaign/{campaign_id}", headers=self._headers)
            connection.getresponse().read()
            connection.close()
        except (OSError, http.client.HTTPException):
            pass
        self.hang_up()

    def hang_up(self) -> None:
        """Ends the answer that the other thread reads. The connection is its own to close."""
        try:
            if self._socket is not None:
                self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    @staticmethod
    def _fail(response: http.client.HTTPResponse) -> None:
        said = response.read().decode("utf-8", "replace").strip()
        if response.status == 404:
            raise _Unknown(said)
        if response.status in (400, 401, 403, 405, 409):
            raise Refused(said)
        raise OSError(said)
