"""Runs a program in a terminal for at most a minute, and answers its questions with their defaults."""

import os
import pty
import signal
import sys
import termios

child, terminal = pty.fork()
if child == 0:
    # An answer can arrive before the program reads keys: it must not become Ctrl-J.
    attributes = termios.tcgetattr(0)
    attributes[0] &= ~termios.ICRNL
    termios.tcsetattr(0, termios.TCSANOW, attributes)
    os.execv(sys.argv[1], sys.argv[1:])
# Ends this program, and with it the terminal and what runs in it.
signal.alarm(60)
try:
    while shown := os.read(terminal, 4096):
        sys.stdout.write(shown.decode(errors="replace"))
        # A question shows the cursor.
        if b"\x1b[?25h" in shown:
            os.write(terminal, b"\r")
except OSError:
    pass  # The program has ended.
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
