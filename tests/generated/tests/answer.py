"""Runs a program in a terminal, and answers its questions with their defaults."""

import os
import pty
import sys

child, terminal = pty.fork()
if child == 0:
    os.execv(sys.argv[1], sys.argv[1:])
try:
    while shown := os.read(terminal, 4096):
        sys.stdout.write(shown.decode(errors="replace"))
        # A question shows the cursor.
        if b"\x1b[?25h" in shown:
            os.write(terminal, b"\r")
except OSError:
    pass  # The program has ended.
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
