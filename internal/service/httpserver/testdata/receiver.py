"""A receiver of callbacks that verifies the signature. Python's standard library is enough.

Usage: receiver.py SECRET   (prints the port it listens on, then one line per callback)
"""
import hashlib
import hmac
import http.server
import json
import sys

SECRET = sys.argv[1].encode()


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        want = "sha256=" + hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(want, self.headers.get("X-Signature", "")):
            self.send_response(401)
            self.end_headers()
            print("refused", flush=True)
            return
        self.send_response(204)
        self.end_headers()
        event = json.loads(body)
        print(event["task_id"], event["status"], flush=True)

    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
print(server.server_port, flush=True)
server.serve_forever()
