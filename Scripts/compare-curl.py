#!/usr/bin/env python3
"""Runs random command lines with curl and with martlet, and prints the differences.

usage: compare-curl.py [--seed N] [--count N] [--only CASE] [--martlet PATH] [--all]

Each case depends only on the seed and its number, so that --only reproduces a difference. Each program runs in its own
directory with the same files, against an origin on 127.0.0.1 that this script starts. The script compares the exit
status, standard output, the resulting files, and the requests that the origin received. Deliberate differences
(Sources/Martlet/Martlet.docc/ComingFromCurl.md) are counted by name; --all prints them too. The exit status is 1 if
there are others.
"""

import argparse, base64, collections, gzip, hashlib, os, random, re, shlex, shutil, socket, subprocess, sys
import tempfile, threading, zlib

TEXT = b"".join(b"line %d of the text\n" % n for n in range(40))
BINARY = bytes(range(256)) * 8
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"


class Origin:
    """An HTTP/1.1 server, and a proxy for itself, that sends the same response to the same request."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.requests = []
        threading.Thread(target=self.accept, daemon=True).start()

    def taken(self):
        """The requests since the last call."""
        with self.lock:
            requests, self.requests = self.requests, []
        return requests

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            # An idle connection ends after 3 s, for a client that waits for its end.
            connection.settimeout(3)
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with connection, connection.makefile("rb") as reader:
                while self.answer(reader, connection):
                    pass
        except OSError:
            pass

    def answer(self, reader, connection):
        line = reader.readline()
        lines = []
        while (field := reader.readline()) not in (b"\r\n", b""):
            lines.append(field.rstrip(b"\r\n"))
        if not line.endswith(b"\n"):
            return False
        fields = {}
        for field in lines:
            name, _, value = field.partition(b":")
            fields.setdefault(name.lower().decode("latin-1"), value.strip())
        method, target, version = (line.split() + [b""] * 3)[:3]
        path = re.sub(rb"^http://[^/]*", b"", target).partition(b"?")[0].decode("latin-1") or "/"
        # If the client waits for 100, the length is not known before the response.
        record = [line.rstrip(b"\r\n"), lines, b""]
        with self.lock:
            self.requests.append(record)
        if fields.get("expect", b"").lower() == b"100-continue" and path != "/expect":
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        record[2] = self.body(reader, fields)
        if method == b"CONNECT":
            refused = target.startswith(b"refused")
            connection.sendall(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n" if refused else b"HTTP/1.1 200 OK\r\n\r\n")
            return not refused
        head, body, ends = self.response(method, path, fields, record[2])
        if head is None:
            return False
        connection.sendall(head + (b"" if method == b"HEAD" else body))
        return not ends and version == b"HTTP/1.1" and fields.get("connection", b"").lower() != b"close"

    @staticmethod
    def body(reader, fields):
        if fields.get("transfer-encoding", b"").lower() == b"chunked":
            body = b""
            while size := int(reader.readline().split(b";")[0] or b"0", 16):
                body += reader.read(size)
                reader.readline()
            reader.readline()
            return body
        return reader.read(int(fields.get("content-length", b"0") or b"0"))

    def response(self, method, path, fields, body):
        """Head, body, and whether the connection ends; the head is absent if nothing is sent."""
        def message(status, body, *lines, length=True):
            lines = [b"HTTP/1.1 " + status, *lines]
            if length:
                lines.append(b"Content-Length: %d" % len(body))
            return b"\r\n".join(lines) + b"\r\n\r\n", body, False

        name, _, rest = path[1:].partition("/")
        if name == "text":
            first, last = 0, len(TEXT) - 1
            wanted = re.fullmatch(rb"bytes=(\d*)-(\d*)", fields.get("range", b""))
            if wanted and wanted[1] and int(wanted[1]) > last:
                return message(b"416 No Range", b"", b"Content-Range: bytes */%d" % len(TEXT))
            if wanted and (wanted[1] or wanted[2]):
                if wanted[1]:
                    first, last = int(wanted[1]), min(last, int(wanted[2] or last))
                else:
                    first = max(0, len(TEXT) - int(wanted[2]))
                return message(b"206 Part", TEXT[first:last + 1], b"Content-Range: bytes %d-%d/%d" % (first, last, len(TEXT)))
            if fields.get("if-none-match") == b'"tag"' or "if-modified-since" in fields:
                return message(b"304 Not Modified", b"", b'ETag: "tag"', length=False)
            return message(b"200 OK", TEXT, b"Content-Type: text/plain", b'ETag: "tag"', b"Last-Modified: " + DATE)
        if name == "status":
            status = int(rest)
            return message(b"%d Word" % status, b"" if status == 204 else b"status\n", length=status != 204)
        if name == "redirect":
            count, _, status = rest.partition("/")
            location = b"/text" if int(count) <= 1 else b"/redirect/%d/%s" % (int(count) - 1, status.encode())
            return message(status.encode() + b" Moved", b"moved\n", b"Location: " + location)
        if name == "gzip":
            return message(b"200 OK", gzip.compress(TEXT, mtime=0), b"Content-Encoding: gzip")
        if name == "deflate":
            return message(b"200 OK", zlib.compress(TEXT), b"Content-Encoding: deflate")
        if name == "coding":
            return message(b"200 OK", b"coded", b"Content-Encoding: compress")
        if name == "chunked":
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(TEXT[n:n + 99]), TEXT[n:n + 99]) for n in range(0, len(TEXT), 99))
            head, _, _ = message(b"200 OK", b"", b"Transfer-Encoding: chunked", length=False)
            return head, chunks + b"0\r\nX-Trailer: t\r\n\r\n", False
        if name == "close":
            head, _, _ = message(b"200 OK", b"", length=False)
            return head, TEXT, True
        if name == "short":
            head, _, _ = message(b"200 OK", b"", b"Content-Length: 1000", length=False)
            return head, b"short", True
        if name == "nothing":
            return None, b"", True
        if name == "garbage":
            return b"none of HTTP\r\n\r\n", b"", True
        if name == "cookie":
            return message(b"200 OK", fields.get("cookie", b"none") + b"\n", b"Set-Cookie: a=1", b"Set-Cookie: b=2; Path=/x")
        if name == "basic":
            if fields.get("authorization") != b"Basic " + base64.b64encode(b"me:secret"):
                return message(b"401 Who", b"who\n", b'WWW-Authenticate: Basic realm="r"')
        if name == "digest":
            if b"Digest" not in fields.get("authorization", b""):
                return message(b"401 Who", b"who\n", b'WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"')
        if name == "named":
            return message(b"200 OK", b"named\n", b'Content-Disposition: attachment; filename="na;med.txt"')
        if name == "interim":
            head, body, ends = message(b"200 OK", b"final\n")
            return b"HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n" + head, body, ends
        if name == "binary":
            return message(b"200 OK", BINARY)
        if b"boundary=" in fields.get("content-type", b""):
            body = b"a form"
        return message(b"200 OK", b"%s %s %d %s\n" % (method, path.encode(), len(body), hashlib.md5(body).hexdigest().encode()))


PATHS = [
    "/text", "/text", "/mirror", "/mirror/a/b.txt", "/status/204", "/status/404", "/status/500", "/redirect/1/302",
    "/redirect/2/301", "/redirect/1/303", "/redirect/1/307", "/redirect/3/308", "/gzip", "/deflate", "/coding", "/chunked",
    "/close", "/short", "/nothing", "/garbage", "/cookie", "/basic", "/digest", "/named", "/interim", "/binary",
    "/mirror/../text", "/mirror?q=1", "/mirror?", "/mirror#part",
]
VARIABLES = [
    "http_code", "response_code", "size_download", "size_upload", "size_header", "num_connects", "num_redirects", "method",
    "content_type", "redirect_url", "url", "url_effective", "exitcode", "urlnum", "num_headers", "http_version", "scheme",
    "remote_ip", "filename_effective", "http_connect", "referer", "ssl_verify_result", "header{etag}", "nothing",
]
FILES = {"in.txt": TEXT[:50], "data.bin": BINARY, "list": b"a b\nc\r\n", "page.html": b"<p>", "format": b"%{http_code}\nx\n"}
FILES["netrc"] = b"machine 127.0.0.1 login me password secret\n"
FILES["jar"] = b"# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tkept\tyes\n"


def words(random):
    """The options of one group, without URLs and outputs."""
    c = random.choice
    options = [
        lambda: ["-i"], lambda: ["-I"], lambda: ["-L"], lambda: ["-L", "--max-redirs", c(["0", "1", "-1"])], lambda: ["-f"],
        lambda: ["--fail-with-body"], lambda: ["-D", c(["-", "heads", "none/heads"])], lambda: ["-A", c(["me", ""])],
        lambda: ["-e", "http://from/"], lambda: ["-r", c(["0-9", "5-", "-7", "9999-", "3"])], lambda: ["--compressed"],
        lambda: ["-H", c(["X-A: 1", "X-B;", "Accept:", "User-Agent: x", "Host: other", "X-C:no blank", "Content-Type: a/b"])],
        lambda: ["-X", c(["PUT", "DELETE", "POST", "get"])], lambda: ["-d", c(["a=1", "@in.txt", "@list", "", "x y&z"])],
        lambda: ["--data-raw", c(["@in.txt", "raw"])], lambda: ["--data-binary", c(["@data.bin", "@list", "text"])],
        lambda: ["--data-urlencode", c(["a b&c", "n=a b", "n@list", "=x=y", "@in.txt"])], lambda: ["--json", c(["{}", "@in.txt"])],
        lambda: ["-G"], lambda: ["-F", c(["a=b", "f=@in.txt", "f=@in.txt;filename=x", "f=<in.txt", "a=b;type=text/x",
                                           "f=@page.html;type=a/b;filename=\"q;r\"", "g=@missing"])],
        lambda: ["--form-string", "a=@b;c"], lambda: ["-T", c(["in.txt", "-", "missing"])], lambda: ["-b", c(["a=b", "jar", "a=b; c=d"])],
        lambda: ["-c", c(["-", "cookies"])], lambda: ["-u", c(["me:secret", "me:wrong", "me:"])], lambda: ["--digest"],
        lambda: ["--basic"], lambda: ["--anyauth"], lambda: ["-n"], lambda: ["--netrc-file", c(["netrc", "none"]), "--netrc-optional"],
        lambda: ["--oauth2-bearer", "token"], lambda: ["-0"], lambda: ["--raw"], lambda: ["--path-as-is"],
        lambda: ["--max-filesize", c(["10", "1M"])], lambda: ["-z", c([DATE.decode(), "-" + DATE.decode()])],
        lambda: ["--etag-compare", c(["tags", "in.txt"])], lambda: ["--etag-save", "tags"], lambda: ["-J", "-O"],
        lambda: ["-w", "|".join("%%{%s}" % name if "{" not in name else "%%%s" % name for name in random.sample(VARIABLES, 4)) + "\\n"],
        lambda: ["-w", "@format"], lambda: ["-R"], lambda: ["--create-dirs"],
        lambda: ["--post302"], lambda: ["--location-trusted"], lambda: ["-x", "http://127.0.0.1:PORT"],
        lambda: ["-x", "http://127.0.0.1:PORT", "-p"], lambda: ["-x", ""], lambda: ["--output-dir", c([".", "none"])], lambda: ["-C", c(["0", "5"])],
        lambda: ["--resolve", "origin.test:PORT:127.0.0.1"], lambda: ["--connect-to", "::127.0.0.1:PORT"], lambda: ["--no-such"],
        lambda: ["-K", "config"],
    ]
    return [word for option in random.sample(options, random.choice([0, 1, 1, 2, 2, 3, 4])) for word in option()]


def config(random):
    lines = [
        "header = X-K:1", "header \"X-K: a b\"", "user-agent=k # note", "-H \"X-L: 2\"", "# nothing", "", "data = a=1", "include",
        "url = http://127.0.0.1:PORT/mirror/k # note", "silent", "output = k", "referer: http://from/",
    ]
    return "\n".join(random.sample(lines, random.choice([1, 2, 3]))) + "\n"


def case(seed, number, port):
    """The command line of a case, and its file of options."""
    chance = random.Random(f"{seed}/{number}")
    line = []
    for group in range(chance.choice([1, 1, 1, 1, 2])):
        line += ["--next"] if group else []
        line += ["-s"] + words(chance)
        for _ in range(chance.choice([1, 1, 1, 2])):
            host = chance.choice(["127.0.0.1:PORT"] * 9 + ["origin.test:PORT", "127.0.0.1:1"])
            line.append(chance.choice(["http://", "http://", ""]) + host + chance.choice(PATHS))
            line += chance.choice([[]] * 5 + [["-o", "out%d" % len(line)], ["-O"], ["-o", "none/out"], ["-o", "/dev/full"]])
    place = lambda text: text.replace("PORT", str(port))
    return [place(word) for word in line], place(config(chance))


def normal(requests):
    """Requests without differences in names, random values and the order of fields."""
    shown = []
    for line, fields, body in requests:
        boundary = next((m[1] for m in (re.search(rb"boundary=(\S+)", f) for f in fields) if m), None)
        kept = []
        for field in fields:
            given, _, value = field.partition(b":")
            name = given.lower()
            # Both retain the text after the colon of -H, except for one optional blank.
            field = given + b": " + value.strip()
            if name in (b"proxy-connection", b"expect"):
                continue
            if name == b"user-agent" and re.search(rb"(curl|Martlet)/", field):
                field = b"User-Agent: ours"
            if name == b"accept-encoding" and b"gzip" in field:
                field = b"Accept-Encoding: ours"
            if boundary and name == b"content-length":
                field = b"Content-Length: of the form"
            if b"Digest" in field:
                field = name + b": Digest " + b" ".join(sorted(re.findall(rb"(\w+)=", field)))
            if boundary:
                field = field.replace(boundary, b"BOUNDARY")
            kept.append(field)
        if boundary:
            body = body.replace(boundary, b"BOUNDARY")
            body = b"".join(sorted(body.splitlines(True)))
        shown.append(b"\n".join([line] + sorted(kept, key=bytes.lower)) + b"\n\n" + body)
    return shown


def run(program, line, options, origin):
    folder = tempfile.mkdtemp(prefix="compare-curl-")
    try:
        for name, content in FILES.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(content)
        with open(os.path.join(folder, "config"), "w") as file:
            file.write(options)
        origin.taken()
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "LC_ALL": "C.UTF-8"}
        try:
            done = subprocess.run([program, "-q", "-S", *line], cwd=folder, env=environment, input=b"from standard input\n",
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=20)
            status, output, errors = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            status, output, errors = "no end", b"", b""
        files = {}
        for parent, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(parent, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, folder)] = file.read()
        # Unchanged files are not shown.
        files = {name: content for name, content in files.items() if FILES.get(name) != content}
        return {"status": status, "output": output, "files": files, "requests": normal(origin.taken()), "errors": errors}
    finally:
        shutil.rmtree(folder)


COOKIE_FILE = re.compile(rb"# Netscape HTTP Cookie File\n(?:#[^\n]*\n)*\n((?:[^\t\n]+(?:\t[^\t\n]*){6}\n)*)")
MISTAKES = re.compile(
    rb"\(2\) (there are more outputs than URLs|--etag-compare and --etag-save go with one URL|HTTP/1.0 has no chunks|"
    rb"option -C: cannot be used with -|only one of -d, -F, -I and -T|option --no-such: is unknown)")
UNUSABLE = re.compile(rb"\((26\) could not (read|use) |3\) [^\n]* address )")


def has(line, option, *values):
    """Whether an option is given, with one of the values if any are specified."""
    return any(word == option and (not values or value in values) for word, value in zip(line, line[1:] + [""]))


def ended(line, ours, theirs):
    """The name of a difference that ends the comparison; None for others."""
    if theirs["status"] == -11 and has(line, "-D", "none/heads"):
        return "curl crashes"
    nothing = not ours["requests"] and not ours["output"] and set(ours["files"]) <= {"config"}
    if nothing and ours["status"] == 2 and MISTAKES.search(ours["errors"]):
        return "a mistake on the command line: nothing is sent"
    if nothing and ours["status"] in (3, 26) and UNUSABLE.search(ours["errors"]) and (theirs["requests"] or "--next" in line):
        return "a file or URL that cannot be used: nothing is sent"
    unread = has(line, "-T", "missing") or has(line, "-F", "g=@missing")
    if unread and b"(26) missing" in ours["errors"] and ours["output"].startswith(theirs["output"]) and (
            lines(ours)[:len(theirs["requests"])] == lines(theirs)):
        return "a file that cannot be uploaded ends its own transfer alone"
    return None


def lines(result):
    """The request lines of a result."""
    return [request.partition(b"\n")[0] for request in result["requests"]]


def change(result, part, pattern, by=b""):
    """Replaces a pattern in one part of a result."""
    def replaced(value):
        if isinstance(value, dict):
            return {name: content if name == "config" else re.sub(pattern, by, content) for name, content in value.items()}
        return [re.sub(pattern, by, entry) for entry in value] if isinstance(value, list) else re.sub(pattern, by, value)
    result[part] = replaced(result[part])


def once(requests, method):
    """The requests, with immediate repetitions for /nothing removed."""
    pattern = method + rb" \S*/nothing "
    return [r for n, r in enumerate(requests) if not (n and r == requests[n - 1] and re.match(pattern, r))]


def weird(line, ours, theirs):
    if (theirs["status"], ours["status"]) == (1, 8) and any("/garbage" in word for word in line):
        theirs["status"] = 8


def buffered(line, ours, theirs):
    if (theirs["status"], ours["status"]) == (18, 23) and "/dev/full" in line and any("/short" in word for word in line):
        theirs["status"] = 23


def posted_once(line, ours, theirs):
    theirs["requests"] = once(theirs["requests"], b"POST")


def kept(line, ours, theirs):
    if "none/out" in line or "/dev/full" in line:
        tunnels = [r for r in theirs["requests"] if r.startswith(b"CONNECT ")]
        if has(line, "-p") and len(set(tunnels)) == 1:
            for result in (ours, theirs):
                result["requests"] = tunnels[:1] + [r for r in result["requests"] if r != tunnels[0]]
        ours["requests"] = once(ours["requests"], b"GET")


def empty_query(line, ours, theirs):
    if has(line, "-x") and any(word.endswith("?") for word in line):
        change(ours, "requests", rb"^(\S+ http://\S+)\? ", rb"\1 ")


def form_type(line, ours, theirs):
    if has(line, "--digest") and has(line, "-F"):
        change(ours, "requests", rb"\nContent-Type: multipart/[^\n]*(?=(\n[^\n]+)*\n\n$)")


def zero_length(line, ours, theirs):
    if has(line, "-X", "PUT", "POST"):
        change(ours, "requests", rb"(?<=\n)Content-Length: 0\n")
        change(theirs, "requests", rb"(?<=\n)Content-Length: 0\n")


def ranged(line, ours, theirs):
    if not has(line, "-r"):
        return
    with_range = [r for r in ours["requests"] if b"\nRange:" in r and r.partition(b"\n\n")[2]]
    change(theirs, "requests", rb"(?<=\n)Content-Range: [^\n]*\n")
    ours["requests"] = [re.sub(rb"(?<=\n)Range: [^\n]*\n", b"", r) if r in with_range else r for r in ours["requests"]]
    # Only /text evaluates it, and then the responses differ, too.
    if ours["requests"] == theirs["requests"] and any(re.match(rb"\S+ \S*/text ", r) for r in with_range):
        ours.update(status=theirs["status"], output=theirs["output"], files=theirs["files"])


def cookie_file(line, ours, theirs):
    if has(line, "-c"):
        for result in (ours, theirs):
            # Any number of times, at least once, in any order.
            cookies = b"".join(sorted({c for m in COOKIE_FILE.findall(result["output"]) for c in m.splitlines(True)}))
            change(result, "output", COOKIE_FILE)
            result["output"] += cookies
            change(result, "files", COOKIE_FILE, rb"\1")
            if "cookies" in result["files"]:
                result["files"]["cookies"] = b"".join(sorted(result["files"]["cookies"].splitlines(True)))


def tunnelled(line, ours, theirs):
    if has(line, "-x") and has(line, "--connect-to"):
        ours["requests"] = [r for r in ours["requests"] if not r.startswith(b"CONNECT ")]
        theirs["requests"] = [r for r in theirs["requests"] if not r.startswith(b"CONNECT ")]
        change(theirs, "requests", rb"^(\S+) http://[^/ ]+", rb"\1 ")


def expected(line, ours, theirs):
    if has(line, "-T"):
        for part in ("output", "files"):
            change(theirs, part, rb"HTTP/1.1 100 Continue\r\n\r\n")


def later(line, ours, theirs):
    count = len(theirs["requests"])
    if has(line, "-L") and has(line, "-i") and ours["status"] == 23 and ours["requests"][:count] == theirs["requests"]:
        ours["requests"] = theirs["requests"]


def upper(line, ours, theirs):
    for result in (ours, theirs):
        result["requests"] = [re.sub(rb"%[0-9A-Fa-f]{2}", lambda m: m[0].upper(), r) for r in result["requests"]]


def whole(line, ours, theirs):
    if has(line, "-r") and has(line, "--compressed"):
        change(theirs, "requests", rb"(?<=\n)Accept-Encoding: [^\n]*\n")


def saved(line, ours, theirs):
    if has(line, "--etag-save") and b"(23)" in ours["errors"]:
        theirs["files"]["tags"] = ours["files"].get("tags", b"")


def form_size(line, ours, theirs):
    if has(line, "-F") and any("size_upload" in word for word in line):
        for result in (ours, theirs):
            change(result, "output", rb"(?<![0-9])1[0-9]{2}(?![0-9])", b"1xx")


def grouped(line, ours, theirs):
    if has(line, "--resolve") and "--next" in line and b"(6)" in ours["errors"]:
        if lines(ours) == lines(theirs)[:len(ours["requests"])]:
            ours.update(theirs)


def doubted(line, ours, theirs):
    if has(line, "-f") and has(line, "--fail-with-body") and theirs["status"] == 2:
        ours.update(theirs)


def unlimited(line, ours, theirs):
    # curl's output is compared up to the length that Martlet wrote.
    if has(line, "--max-filesize") and b"(63)" in ours["errors"]:
        for name, content in list(theirs["files"].items()):
            written = ours["files"].get(name)
            if written is None:
                del theirs["files"][name]
            elif content.startswith(written):
                theirs["files"][name] = written
        if theirs["output"].startswith(ours["output"]):
            theirs["output"] = ours["output"]
        if ours["status"] == 63:
            theirs["status"] = 63


def bearer(line, ours, theirs):
    if has(line, "--anyauth") and has(line, "--oauth2-bearer"):
        change(ours, "requests", rb"(?<=\n)Authorization: Bearer token\n")


def large_head(line, ours, theirs):
    if (theirs["status"], ours["status"]) == (63, 0) and has(line, "-I") and has(line, "--max-filesize"):
        theirs["status"] = 0
        for name, content in theirs["files"].items():
            if ours["files"].get(name) == content + b"\r\n":
                theirs["files"][name] = ours["files"][name]
        if ours["output"] == theirs["output"] + b"\r\n":
            theirs["output"] = ours["output"]


def scheme(line, ours, theirs):
    if any("%{scheme}" in word for word in line) and any("127.0.0.1:1/" in word for word in line):
        for result in (ours, theirs):
            change(result, "output", rb"(?m)(?:(?<=\|)|^)HTTP(?=\||$)")


RULES = {
    "HTTP/0.9 is a weird reply, not another protocol": weird, "a write that fails is seen at once": buffered,
    "a POST is not repeated on another connection": posted_once, "a connection is kept when its file cannot be written": kept,
    "an empty query stays in what a proxy is asked for": empty_query, "the type of a form on the request without its body": form_type,
    "Content-Length: 0 for a method that expects a body": zero_length, "Range, not Content-Range, with a body": ranged,
    "the comments and the order of a cookie file": cookie_file, "--connect-to is a tunnel": tunnelled,
    "Expect: 100-continue with large bodies only": expected,
    "--max-filesize limits a body of unknown length": unlimited, "percent-encoding in upper case": upper,
    "a tag is saved with its body": saved, "the boundary of a form": form_size,
    "--resolve holds for its group": grouped, "-f with --fail-with-body": doubted,
    "no content coding is asked for with a range": whole, "-L -i writes the heads with the last response": later, "a bearer's token is sent at once": bearer,
    "a HEAD has no body that could be too large": large_head, "the scheme of a transfer that was refused": scheme,
}
PARTS = ("status", "output", "files", "requests")


def deliberate(line, ours, theirs):
    """The names of the deliberate differences as on the page; None if any other remains."""
    if name := ended(line, ours, theirs):
        return name
    ours, theirs = dict(ours, files=dict(ours["files"])), dict(theirs, files=dict(theirs["files"]))
    names = []
    for name, rule in RULES.items():
        left = sum(ours[part] != theirs[part] for part in PARTS)
        rule(line, ours, theirs)
        if left > sum(ours[part] != theirs[part] for part in PARTS):
            names.append(name)
        if all(ours[part] == theirs[part] for part in PARTS):
            return "; ".join(names)
    return None


def shown(value):
    text = value.decode("latin-1") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= 600 else text[:600] + "…")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", type=int, help="one case, by its number")
    parser.add_argument("--martlet", default=".build/debug/martlet")
    parser.add_argument("--all", action="store_true", help="print deliberate differences, too")
    options = parser.parse_args()
    martlet = os.path.abspath(options.martlet)
    origin = Origin()
    meant, unexplained = collections.Counter(), 0
    numbers = range(options.count) if options.only is None else [options.only]
    for number in numbers:
        line, file = case(options.seed, number, origin.port)
        theirs, ours = (run(program, line, file, origin) for program in ("curl", martlet))
        parts = [part for part in PARTS if ours[part] != theirs[part]]
        if not parts:
            continue
        name = deliberate(line, ours, theirs)
        if name:
            meant[name] += 1
            if not options.all:
                continue
        else:
            unexplained += 1
        print(f"\ncase {number} of seed {options.seed}" + (f" ({name})" if name else "") + f":\n  {shlex.join(line)}")
        if "config" in line:
            print(f"  config: {shown(file)}")
        for part in parts:
            print(f"  {part}:\n    curl    {shown(theirs[part])}\n    martlet {shown(ours[part])}")
        if ours["errors"]:
            print(f"  martlet said {shown(ours['errors'])}")
    total = len(numbers)
    print(f"\n{total} command lines: {total - unexplained - sum(meant.values())} agree, {unexplained} differ")
    for name, count in meant.most_common():
        print(f"  {count} differ on purpose: {name}")
    sys.exit(1 if unexplained else 0)


if __name__ == "__main__":
    main()
