import MartletCredentials
import MartletContent

extension BugClass {
    /// All bug classes, each with the tests that would detect it and with the features that are still missing.
    static let all: [BugClass] = framing + connections + requests + aboveTheWire + trust + machine

    private static let framing = [
        BugClass(
            1, "Content-Length and Transfer-Encoding together",
            .row("Content-Length before Transfer-Encoding"), .row("Content-Length behind Transfer-Encoding"),
            .row("Content-Length that covers a smuggled response beside Transfer-Encoding"),
            .test("Transfer-Encoding overrides Content-Length, and the connection is not reused")),
        BugClass(
            2, "conflicting Content-Lengths", .row("Two different Content-Lengths"),
            .row("Two different lengths in one field"), .row("The same length twice in one field")),
        BugClass(
            3, "Content-Length's syntax", .row("Content-Length: “+5”"), .row("Content-Length: “-1”"),
            .row("Content-Length: “0x5”"), .row("Content-Length: “5 5”"), .row("Content-Length: “5;”"),
            .row("Content-Length: “1e1”"), .row("Content-Length: “٥”")),
        BugClass(
            4, "overflow of a length", .row("Content-Length: “18446744073709551621”"),
            .row("Content-Length: “9223372036854775808”"), .row("Content-Length: “99999999999999999999”"),
            .row("A body announced as 2^63 - 1 bytes"),
            .test("A Content-Length of 2^63 or more is rejected without an allocation")),
        BugClass(
            5, "chunk sizes", .row("A size of seventeen digits"), .row("A negative size"),
            .row("A size with a prefix"), .row("An empty size"), .row("A size with an underscore"),
            .row("A size of two megabytes of zeros"), .row("A size line that ends with LF"),
            .row("A size of 2^63")),
        BugClass(
            6, "chunk framing", .row("A chunk longer than its size"), .row("A chunk without its CRLF"),
            .row("Any two bytes in place of CRLF"), .row("No last chunk"),
            .test("A response that ends early, at any byte, is an error that reports the truncation")),
        BugClass(
            7, "floods of chunk extensions", .row("Endless chunks of a byte with extensions of 16,000"),
            .row("Endless chunks of a byte with extensions of ten"), .row("One endless chunk extension"),
            .test("1500 extensions of 16 KiB are rejected after 16 KiB and one byte")),
        BugClass(
            8, "floods of trailers, and smuggling by them", .row("Endless trailers"),
            .test("20 MB of trailers are rejected after 16 KiB"),
            .test("Trailers are delivered as trailers and never merged into the head")),
        BugClass(
            9, "confusion of transfer codings", .row("Transfer-Encoding: “xchunked”"),
            .row("Transfer-Encoding: “chunked, identity”"), .row("Transfer-Encoding: “chunked, chunked”"),
            .row("Transfer-Encoding in two fields"), .row("Transfer-Encoding in HTTP/1.0"),
            .row("Transfer-Encoding with a space before its colon")),
        BugClass(
            10, "folded fields", .test("A folded field is one value without line breaks"),
            .test("No name, value or reason ever contains a line end or NUL")),
        BugClass(
            11, "control bytes in heads", .row("A NUL in a value"), .row("A lone CR in a value"),
            .row("A line without a colon"), .row("An empty name"), .row("A space in a name")),
        BugClass(
            12, "unbounded heads", .row("An endless status line"), .row("An endless field value"),
            .row("Endless small fields"), .row("Endless large fields"),
            .test("A flood of any kind takes less than 20 MiB, and ends")),
        BugClass(
            13, "garbage in the status line", .row("A status of four digits"), .row("A status with a letter"),
            .row("A status of zeros"), .row("A status below 100"), .row("No space before the status"),
            .row("SSH"), .row("A page without a head"), .row("A TLS alert"), .row("An HTTP/0.9 answer")),
        BugClass(
            14, "interim responses", .row("A flood of early hints"), .row("Endless early hints"),
            .row("100 although nobody asked"), .row("101 although nobody asked"),
            .row("Ten early hints, whose fields must not leak"),
            .test("Fields of an early hint are reported separately and not as fields of the response")),
        BugClass(
            15, "bodies that must not exist", .row("204 with a body"), .row("304 with chunks behind"),
            .row("HEAD with the body it speaks of"), .row("HEAD with chunks")),
        BugClass(
            16, "poisoning of the queue of responses", .row("A second response behind a length"),
            .row("A second response behind chunks"),
            .test("A response sent on an idle connection closes the connection and is never delivered"),
            .test("Bytes on an idle connection close it immediately, without another request")),
    ]

    private static let connections = [
        BugClass(
            17, "stale connections", .test("A GET is retried once on a new connection"),
            .test("A POST whose bytes were written is not retried"),
            .test("A POST is retried if no byte was written")),
        BugClass(
            18, "truncation", .row("Nothing"), .row("A body short of a byte"), .row("A reset in a body"),
            .test("A response that ends early, at any byte, is an error that reports the truncation"),
            .test(
                "A reset that the upload's writer sees first is a lost connection, whatever the reader received"),
            .test("A download that is cut leaves no file"), .awaits("the cache")),
        BugClass(
            19, "TLS cut without a close_notify",
            .test("A response that ends early, at any byte, is an error that reports the truncation"),
            .test(
                "A close-delimited body is truncated if the stream breaks off, as TLS does without close_notify"),
            .test(
                "A TLS connection that is cut at any byte of the handshake or the response is an error")
        ),
        BugClass(
            20, "integrity of gzip", .row("A gzip body short of a byte"),
            .row("A gzip body with another checksum"), .row("A gzip body with another length"),
            .row("A page that is called gzip"), .row("No byte of a gzip body"), .row("Two gzip members"),
            .row("Bytes behind a gzip body"),
            .test("A gzip body cut at any byte is an error even if its Content-Length matches")),
        BugClass(
            21, "decompression bombs", .row("A gzip bomb"), .row("A bomb within a bomb"),
            .row("Twenty codings"), .row("Endless gzip members of no bytes"),
            .test("More than five codings are rejected, in one field or in several"),
            .test("A bomb is stopped by its ratio, both streamed and collected")),
        BugClass(
            22, "endless bodies", .row("A body without end that is collected"),
            .row("A body announced as 10^11 bytes"),
            .test("10 GiB pass through less than 16 MiB of memory"),
            .test(
                "An endless stream is slowed down to the reader's pace and ends when the reader leaves"
            )),
    ]

    private static let requests = [
        BugClass(
            23, "injection into requests",
            .test("Control bytes, backslashes and spaces at the ends of a URL are rejected"),
            .test("A name or method with control bytes, spaces or a colon cannot be created"),
            .test("A path that was set with line breaks is sent as one target in one line"),
            .test("Line breaks and NULs in a field of an HTTPRequest stay within its line"),
            .test("An invalid Host is rejected"),
            .test(
                "A control character in a name or type is rejected before sending, with its position"
            ),
            .test("UTF-8 names stay, and quotes and line breaks in them are percent-encoded")),
        BugClass(
            24, "framing by the caller", .test("A Content-Length that differs from the body's length is rejected"),
            .test("A Transfer-Encoding other than chunked is rejected"),
            .test("A Transfer-Encoding together with a Content-Length is rejected"),
            .test("A session's default field cannot frame a request, and a default Cookie is sent")),
    ]

    private static let aboveTheWire = [
        BugClass(
            25, "Authorization after a redirect", .test("No secret reaches a foreign origin"),
            .test("Credential fields and declared secret fields are not sent to another origin")),
        BugClass(
            26, "other secrets after a redirect", .test("No secret reaches a foreign origin"),
            .test("The session's default fields are sent only to the origin of the call")),
        BugClass(
            27, "Digest across origins",
            .test("A challenge that is pending at one origin is dropped on a redirect to another"),
            .test("A nonce of one origin is not used for another origin"),
            .test(
                "A call's credentials are not sent to another origin, nor after the chain returns"
            )),
        BugClass(
            28, "bearer tokens across schemes", .test("A redirect from https to http is rejected unless it is allowed"),
            .test("Tokens are not sent to another origin and not fetched for it")),
        BugClass(
            29, "credentials in URLs and Referer", .test("An ambiguous URL is rejected without a connection"),
            .test("A URL's description has no password"),
            .test("User name and password in a URL are sent only to its origin"),
            .test("User information in a Location never becomes credentials")),
        BugClass(
            30, "dangerous schemes", .test("A URL without http:// or https:// at its start is rejected"),
            .test("A reference with another scheme is rejected"),
            .test("Schemes other than http and https are rejected")),
        BugClass(
            31, "loops of redirects",
            .test("A redirect loop ends at the limit with an error that contains the last redirect")),
        BugClass(
            32, "reading Location", .test("A host in a reference is parsed as strictly as the host of a URL"),
            .test("Two different Locations are rejected, and two equal ones are accepted"),
            .test("Bytes that are not UTF-8 are forwarded percent-encoded"),
            .test("A reference is resolved against the URL of the response")),
        BugClass(
            33, "rewriting of methods", .test("The method after each status follows RFC 9110"),
            .test("Fields that describe a body are removed together with it"),
            .test("307 sends the body again, and 303 does not")),
        BugClass(
            34, "redirects with endless bodies",
            .test("A redirect whose body never ends is followed immediately on another connection")),
        BugClass(
            35, "connections under other credentials",
            .test("An idle connection is not used by a view with other trust, identity or versions"),
            .test("A view with a client certificate has separate connections"),
            .test("http and https to one port do not share connections"),
            .test("Connections with different proxy credentials are not shared"),
            .test("Connections of different users are not shared")),
        BugClass(
            36, "TLS sessions under other settings",
            .test("TLS sessions are resumed within a view, and never by a view with other trust"),
            .test("A different context never resumes the session"),
            .test("A TLS session is resumed only with the same proxy setting")),
        BugClass(
            37, "a verdict that is remembered",
            .test("A server accepted without verification is verified by the next view"),
            .test("A view that verifies host names does so after a view that did not")),
    ]

    private static let trust = [
        BugClass(
            38, "names in certificates",
            .test("A wildcard must be the whole leftmost label and matches one label"),
            .test("A wildcard never matches an address"), .test("A name with a NUL matches no host"),
            .test("The subject's common name is not used as a host name"),
            .test("An address among the host names does not match the address"),
            .test("A certificate for other names is rejected")),
        BugClass(
            39, "chains of certificates", .test("An expired certificate is reported as expired"),
            .test("A certificate of the future is reported as not yet valid"),
            .test("A certificate whose extended key usage excludes servers is rejected"),
            .test("A certificate outside the domains of its authority is rejected"),
            .test("A chain that exceeds the path length of an authority is rejected"),
            .test("A chain through a certificate that is not an authority's is rejected"),
            .test("A certificate that signs itself is reported as self-signed"),
            .test("A server or authority key that is too short is rejected"),
            .test("A signature with a broken digest is rejected")),
        BugClass(
            40, "domains of cookies", .test("A Domain that does not include the host is rejected"),
            .test("A Domain that is a public suffix is rejected, without regard to case"),
            .test("An IP address matches only itself"),
            .test("A cookie ignores the port, and a host name with a trailing dot is a different host")),
        BugClass(
            41, "paths and prefixes of cookies",
            .test("A cookie is sent for its path and the paths below it, but not for a mere string prefix"),
            .test("The name prefix __Host- requires Secure, an explicit Path=/ and no Domain"),
            .test("The name prefix __Secure- requires Secure, without regard to case"),
            .test("A response over HTTP cannot replace or shadow a secure cookie")),
        BugClass(
            42, "floods of cookies", .test("Only the first 50 fields of a response are processed"),
            .test("Name and value have at most 4,096 bytes together"),
            .test("A registrable domain has at most 180 cookies, from all of its hosts"),
            .test("A control character is rejected with its offset")),
        BugClass(
            43, "Host as a key", .test("Cookies depend on the URL and not on the Host field"),
            .test("A response is stored by URL, regardless of the caller's Host field"),
            .test("A response to a request with another Host field is served only for the same Host field")),
        BugClass(
            44, "a cache poisoned by others",
            .test("A user never gets a response that is stored for another user"),
            .test("Concurrent requests of different users never share a response"),
            .test("A stored response does not set its cookies again, but a 304 sets its cookies"),
            .test("A response with Vary: Cookie is served only for the same cookies"),
            .test("A response with Vary: * is never served from the cache"),
            .test("A response to a request with credentials is selected only if it is public")),
        BugClass(
            45, "truncation kept in a cache",
            .test("A truncated body is an error, and neither an entry nor a temporary file is left"),
            .test("A reader that stops in the middle ends the transfer, and nothing is stored"),
            .test("Bytes after the announced length are not stored")),
        BugClass(
            46, "parts taken for the whole", .test("A partial response from the network is not stored"),
            .test("A range of a fresh stored body is served with its exact bytes"),
            .test("A range request with If-Range gets the range only if the entity tag matches strongly")),
        BugClass(
            47, "a cache that is not invalidated",
            .test("Successful POST, PUT, PATCH and DELETE requests invalidate"),
            .test("Location and Content-Location are invalidated as well, for the same origin only"),
            .test(
                "A GET that started before a PUT is not stored after it and not shared with later requests"
            )),
        BugClass(
            48, "dates and ages",
            .test("Fields determine freshness, and ambiguous values count as stale"),
            .test("After any change of the clock, no age is negative and no response stays fresh forever"),
            .test("No time, however distant, traps")),
    ]

    private static let machine = [
        BugClass(
            49, "paths out of a folder", .test("-O never leaves the directory"),
            .test("A name of only dots, separators or invisible characters is rejected"),
            .test("A name that is too long is cut at a character boundary and keeps its extension"),
            .awaits("the download manager")),
        BugClass(
            50, "links in a folder", .test("A symbolic link at the target is replaced, not followed"),
            .test("A file that appears under the name at the last moment is not replaced"),
            .test("An existing file is not replaced unless that is allowed")),
        BugClass(51, "a resume of something else", .awaits("resumed downloads")),
        BugClass(
            52, "slow servers", .row("Silence behind the request"), .row("Silence in a body"),
            .row("A head byte by byte"), .row("A body byte by byte"), .row("Silence towards an upload"),
            .row("Silence for a hello"), .test("The connect timeout ends a connection attempt without a reply"),
            .test("The pool timeout ends a wait for a connection")),
        BugClass(
            53, "SIGPIPE", .test("Writing after a reset is an error and does not end the process"),
            .test("Writing after the peer's end is an error and does not end the process"),
            .test("Writing to a closed peer is an error and raises no signal")),
        BugClass(
            54, "leaks of descriptors",
            .test("The outcome of a hostile peer matches its row, and other calls are unaffected"),
            .test("A call that waits for its peer ends immediately when it is cancelled"),
            .test("A call that is cancelled while it connects ends immediately and leaves no socket"),
            .test("A rejected certificate closes both sockets")),
        BugClass(
            55, "descriptors used by another",
            .test("A descriptor stays open while a call uses it, even if the socket is closed"),
            .test("Concurrent closing from many threads during calls closes once")),
        BugClass(
            56, "continuations resumed twice or never",
            .test("A call that is cancelled while it completes returns its response or CancellationError"),
            .test("Each of a thousand deliveries that race an interruption ends exactly one way"),
            .test("Cancelling a session ends calls in every phase")),
        BugClass(
            57, "calls from within callbacks",
            .test("Calls can be started and cancelled from the progress of another"),
            .test("Middleware can send requests to the same host in the same session with one connection")),
        BugClass(
            58, "confusion of proxies",
            .test("CONNECT contains the target, User-Agent, Proxy-Authorization and no other fields"),
            .test("A 407 is answered with credentials only once"),
            .test("A 2xx has no body despite its fields, and interim responses may come first"),
            .test("A default Proxy-Authorization is sent only to the proxy")),
        BugClass(
            59, "URLs read in two ways", .test("A URL has exactly one destination"),
            .test("An ambiguous URL is rejected without a connection"), .test("User info is never parsed as the host"),
            .test("Every spelling of an IPv4 address becomes dotted decimal"),
            .test("A port must consist of digits and be within 1–65535")),
        BugClass(60, "HSTS under another spelling", .test("Every spelling of a host is one entry")),
        BugClass(
            61, "time that grows with the square",
            .test("A megabyte of commas in a list field is parsed in linear time"),
            .test("A head of 200 KiB that arrives byte by byte takes linear time"),
            .test("Huge inputs are parsed in linear time")),
        BugClass(
            62, "secrets in errors and logs",
            .test(
                "Successful calls, and failures in each phase, log no fields, body, fragment or query secrets"
            ),
            .test("The error for an invalid URL does not repeat it"),
            .test("The error for an invalid request does not repeat its fields"),
            .test("-v prints no credentials")),
        BugClass(
            63, "pins past the verified chain",
            .test("A pinned certificate that the server sends outside the verified path does not match"),
            .test("Pins are enforced on a resumed connection")),
        BugClass(
            64, "proxies from a request's field",
            .test("HTTP_PROXY in upper case can come from a CGI request and is ignored")),
    ]
}
