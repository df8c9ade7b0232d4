"""Work that says on stdout when it begins, goes on, begins to stop and ends: event lines, on the boot-time clock.

The environment may have `WITNESS_TOKEN`, and `WITNESS_STOPS=told`: then the work ends only after a SIGHUP.
"""

import json
import os
import signal
import sys
import threading

import bellwether

# How long the work takes to stop, in seconds.
STOPS_IN = None if os.environ.get("WITNESS_STOPS") == "told" else 0.05

leaving, told = threading.Event(), threading.Event()
signal.signal(signal.SIGTERM, lambda *_: leaving.set())
signal.signal(signal.SIGHUP, lambda *_: told.set())
who = f"python-{os.getpid()}"


def say(event, leadership, at):
    line = {"event": event, "election": "job", "epoch": leadership.epoch, "boot_ns": at, "incarnation": who,
            "deadline_boot_ns": leadership.deadline_boot_ns, "why": leadership.ended,
            "holds": "yes" if leadership.holds() else "no"}
    os.write(1, (json.dumps(line) + "\n").encode())


def work(leadership):
    say("acquired", leadership, bellwether.boot_ns())
    while True:
        # Before it asks: what it does then is covered by the answer.
        now = bellwether.boot_ns()
        if leaving.is_set() or not leadership.wait(0.02):
            break
        say("beat", leadership, now)
    say("stopping", leadership, bellwether.boot_ns())
    told.wait(STOPS_IN)
    say("released", leadership, bellwether.boot_ns())


with bellwether.Campaign(sys.argv[1], os.environ.get("WITNESS_TOKEN")) as campaign:
    while not leaving.is_set():
        try:
            leadership = campaign.wait_for_leadership(0.1)
        except TimeoutError:
            continue
        work(leadership)
        campaign.finished(leadership)
