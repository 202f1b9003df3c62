"""What the identity providers for tests in Python share: settings, and the server."""

import os
import sys
import threading

from werkzeug.serving import WSGIRequestHandler, make_server

SETTINGS = dict(os.environ) | dict(argument.split("=", 1) for argument in sys.argv[1:])


class Quiet(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_request(self, *_):
        pass


def listen(app):
    """Returns a server on a free port, and its URL."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    server.daemon_threads = True
    return server, f"http://127.0.0.1:{server.server_port}"


def end_with_stdin():
    """Ends the process when the test ends, for whatever reason: the test keeps this pipe open."""

    def wait():
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()
