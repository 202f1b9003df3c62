"""Uses Claude Code at a terminal as its user would: claude_terminal.py QUESTION. Prints the screens that its user sees,
as a list of lists of lines: the question whether the tool may be called, and the transcript after that."""
import fcntl
import json
import os
import pty
import re
import select
import struct
import sys
import termios
import time

import pyte

LINES, COLUMNS = 40, 90
question = sys.argv[1]
process, terminal = pty.fork()
if process == 0:
    # In this mode, it asks its user before each call.
    os.execvp("claude", ["claude", "--permission-mode", "default"])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
screen = pyte.Screen(COLUMNS, LINES)
stream = pyte.ByteStream(screen)


def press(keys):
    os.write(terminal, keys.encode())


def part(first, last):
    """Returns the lines from one that begins with `first` to one that begins with `last`, without times and without empty
    lines at the end; None if there are none."""
    lines = [re.sub(r"\d\d:\d\d [AP]M", "        ", line).replace("\u00a0", " ").rstrip() for line in screen.display]
    starts = [number for number, line in enumerate(lines) if line.lstrip().startswith(first)]
    ends = [number for number, line in enumerate(lines) if line.lstrip().startswith(last) and starts and number > starts[0]]
    return "\n".join(lines[starts[0] : ends[0]]).rstrip().split("\n") if ends else None


def shown(first, last, seconds=20):
    """Returns the same lines when they have not changed for a second."""
    end, seen, since = time.monotonic() + seconds, None, 0
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            stream.feed(os.read(terminal, 65536))
        now, (before, seen) = time.monotonic(), (seen, part(first, last))
        if seen is None or seen != before:
            since = now
        elif now - since > 1:
            return seen
    sys.exit(f"no lines from {first!r} to {last!r}:\n" + "\n".join(screen.display))


shown("❯", "──")
press(question)
shown(f"❯ {question}", "──")
press("\r")
asked = shown("Tool use", "Esc to cancel")
press("1")
shown("● The tool said", "✻")
# Control and O: the transcript with all calls.
press("\x0f")
print(json.dumps([asked, shown(f"❯ {question}", "✻")]))
os.kill(process, 9)
