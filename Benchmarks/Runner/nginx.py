"""The server that all contenders talk to: nginx on free ports of this machine, plain and with TLS."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request

from fault import Fault

ARTICLE = (
    '{"id":4711,"title":"The bird that never lands","text":"' + "The martlet has no feet and flies all its life. " * 9
    + '","tags":["swift","heraldry","birds","flight"],"rating":4.75,"isPublic":true,"comments":['
    + ",".join(
        '{"id":%d,"author":"reader %d","text":"A remark of some length, as readers make them."}' % (index, index)
        for index in range(1, 6))
    + "]}")

# With Server, Date, Content-Type, Content-Length and Connection there are twenty fields.
FIELDS = {
    "Cache-Control": "public, max-age=3600, stale-while-revalidate=60",
    "ETag": 'W/\\"5f3a-18c2b7d9e40\\"',
    "Last-Modified": "Wed, 12 Nov 2025 08:15:30 GMT",
    "Vary": "Accept-Encoding, Origin",
    "Strict-Transport-Security": "max-age=63072000; includeSubDomains; preload",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "strict-origin-when-cross-origin",
    "X-Request-Id": "7f9c2ba4-e88f-4b12-a1d3-6c0d5e4f3a2b",
    "X-RateLimit-Limit": "5000",
    "X-RateLimit-Remaining": "4987",
    "X-RateLimit-Reset": "1763800000",
    "Access-Control-Allow-Origin": "*",
    "Link": "</articles?page=2>; rel=next, </articles?page=9>; rel=last",
    "Server-Timing": "db;dur=12.3, app;dur=4.5",
}

CONFIGURATION = """
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
worker_processes {workers};
worker_rlimit_nofile {descriptors};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
    client_max_body_size 0;
    client_body_buffer_size 1m;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    sendfile on;
    default_type text/plain;
    proxy_cache_path {directory}/shared keys_zone=shared:1m;
    ssl_certificate {directory}/server.pem;
    ssl_certificate_key {directory}/server.key;
    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    ssl_buffer_size 16k;
    # Bytes per second of a delayed response, so that connections accumulate; the first bytes have no limit.
    map $connections_active $held {{ default 200; 1 0; 2 0; }}
    server {{ listen 127.0.0.1:{plain} backlog=8192; include {directory}/locations; }}
    server {{ listen 127.0.0.1:{tls} ssl backlog=8192; include {directory}/locations; }}
    server {{
        listen 127.0.0.1:{plain_close} backlog=8192;
        keepalive_timeout 0;
        location / {{ return 200 "."; }}
    }}
    server {{
        listen 127.0.0.1:{tls_full} ssl backlog=8192;
        ssl_session_tickets off;
        ssl_session_cache off;
        keepalive_timeout 0;
        location / {{ return 200 "$ssl_session_reused"; }}
    }}
    server {{
        listen 127.0.0.1:{tls_resumed} ssl backlog=8192;
        keepalive_timeout 0;
        location / {{ return 200 "$ssl_session_reused"; }}
    }}
}}
"""

LOCATIONS = """
location / {{ return 200 "Hello, world!"; }}
location = /article {{ default_type application/json; {fields} return 200 '{article}'; }}
location = /held {{ limit_rate $held; return 200 "{held}"; }}
location = /status {{ stub_status; }}
location /files/ {{ alias {directory}/files/; }}
location /throttled/ {{ alias {directory}/files/; limit_rate 5m; }}
location /steady/ {{ alias {directory}/files/; limit_rate 100m; }}
location /cached/ {{ alias {directory}/files/; add_header Cache-Control "max-age=86400"; }}
location ~ ^/shared/(.*)$ {{
    proxy_cache shared;
    proxy_cache_key $1;
    proxy_pass http://$server_addr:$server_port/cached/$1;
}}
location = /cached {{ add_header Cache-Control "max-age=86400"; return 200 "Hello, world!"; }}
location /uploads/ {{ alias {directory}/uploads/; dav_methods PUT DELETE; }}
"""


class Nginx:
    """An nginx server with one worker, so that on two processors the client has its own processor."""

    PORTS = ["plain", "tls", "plain_close", "tls_full", "tls_resumed"]

    def __init__(self, descriptors, holds_briefly):
        self.descriptors = descriptors
        # Whether a delayed response arrives after 5 seconds instead of 10.
        self.holds_briefly = holds_briefly
        self.process = None
        # In memory if there is room, so that the disk is not measured.
        memory = "/dev/shm"
        roomy = os.path.isdir(memory) and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 5 << 30
        self.is_in_memory = roomy
        self.directory = tempfile.mkdtemp(prefix="martlet-bench-", dir=memory if roomy else None)

    def __enter__(self):
        try:
            self._prepare()
            for _ in range(5):
                if self._start():
                    return self
            with open(f"{self.directory}/error.log", encoding="utf-8", errors="replace") as log:
                raise Fault("nginx does not start: " + log.read()[-2000:])
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, port, path="/"):
        """Returns a URL of this server."""
        scheme = "https" if port.startswith("tls") else "http"
        return f"{scheme}://127.0.0.1:{self.ports[port]}{path}"

    @property
    def authority(self):
        """The file with the trusted certificate."""
        return f"{self.directory}/authority.pem"

    def file(self, name):
        """Returns the path of a file that the server serves."""
        return f"{self.directory}/files/{name}"

    def make_file(self, name, size, sparse=False):
        """Creates a file of the size once; a non-sparse file has no two equal consecutive blocks."""
        path = self.file(name)
        if os.path.exists(path):
            return
        with open(path, "wb") as file:
            if sparse:
                file.truncate(size)
                return
            block = os.urandom(1 << 20)
            for _ in range(size >> 20):
                file.write(block)
            file.truncate(size)

    def active_connections(self):
        """Returns the number of open connections, without the connection of this query."""
        with urllib.request.urlopen(self.url("plain", "/status")) as answer:
            return int(answer.read().split()[2]) - 1

    def _prepare(self):
        os.chmod(self.directory, 0o755)
        for name in ["files", "uploads", "body"]:
            os.mkdir(f"{self.directory}/{name}")
        self._make_certificate()
        fields = "".join(f'add_header {name} "{value}";' for name, value in FIELDS.items())
        with open(f"{self.directory}/locations", "w", encoding="ascii") as file:
            file.write(LOCATIONS.format(
                fields=fields, article=ARTICLE, directory=self.directory,
                held="." * (1000 if self.holds_briefly else 2000)))

    def _make_certificate(self):
        """Creates a new authority, and its certificate for this address."""
        def openssl(*words):
            done = subprocess.run(
                ["openssl", *words], cwd=self.directory, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Fault("openssl " + words[0] + ": " + done.stderr)
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        openssl("req", "-x509", *key, "-keyout", "authority.key", "-out", "authority.pem", "-days", "30",
                "-subj", "/CN=Martlet benchmarks",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=127.0.0.1")
        with open(f"{self.directory}/extensions", "w", encoding="ascii") as file:
            file.write("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
                "-CAcreateserial", "-days", "30", "-extfile", "extensions", "-out", "server.pem")

    def _start(self):
        sockets = [socket.socket() for _ in self.PORTS]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        self.ports = {name: each.getsockname()[1] for name, each in zip(self.PORTS, sockets)}
        for each in sockets:
            each.close()
        path = f"{self.directory}/nginx.conf"
        user = "user root;\n" if os.geteuid() == 0 else ""
        with open(path, "w", encoding="ascii") as file:
            file.write(user + CONFIGURATION.format(
                directory=self.directory, workers=1, descriptors=self.descriptors,
                connections=self.descriptors - 100, **self.ports))
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin")
        self.process = subprocess.Popen(
            [program, "-e", f"{self.directory}/error.log", "-p", self.directory, "-c", path],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(100):
            if self.process.poll() is not None:
                return False
            try:
                with urllib.request.urlopen(self.url("plain")) as answer:
                    return answer.read() == b"Hello, world!"
            except OSError:
                time.sleep(0.05)
        return False
