import MartletCredentials
import MartletContent

extension BugClass {
    /// All of them, with the tests that would fail if the mistake were made, and with what is not there yet to make it.
    static let all: [BugClass] = framing + connections + requests + aboveTheWire + trust + machine

    private static let framing = [
        BugClass(
            1, "Content-Length and Transfer-Encoding together",
            .row("Content-Length before Transfer-Encoding"), .row("Content-Length behind Transfer-Encoding"),
            .row("Content-Length that covers a smuggled response beside Transfer-Encoding"),
            .test("Transfer-Encoding wins over Content-Length, and the connection is not reused")),
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
            .test("A Content-Length of 2^63 or more is refused and nothing is allocated for it")),
        BugClass(
            5, "chunk sizes", .row("A size of seventeen digits"), .row("A negative size"),
            .row("A size with a prefix"), .row("An empty size"), .row("A size with an underscore"),
            .row("A size of two megabytes of zeros"), .row("A size line that ends with LF"),
            .row("A size of 2^63")),
        BugClass(
            6, "chunk framing", .row("A chunk longer than its size"), .row("A chunk without its CRLF"),
            .row("Any two bytes in place of CRLF"), .row("No last chunk"),
            .test("A response that ends early, at whatever byte, is an error that says so")),
        BugClass(
            7, "floods of chunk extensions", .row("Endless chunks of a byte with extensions of 16,000"),
            .row("Endless chunks of a byte with extensions of ten"), .row("One endless chunk extension"),
            .test("1500 extensions of 16 KiB are refused in the first 16 KiB and one byte of them")),
        BugClass(
            8, "floods of trailers, and smuggling by them", .row("Endless trailers"),
            .test("20 MB of trailers are refused after 16 KiB of them"),
            .test("Trailers are delivered as such and never merged into the head")),
        BugClass(
            9, "confusion of transfer codings", .row("Transfer-Encoding: “xchunked”"),
            .row("Transfer-Encoding: “chunked, identity”"), .row("Transfer-Encoding: “chunked, chunked”"),
            .row("Transfer-Encoding in two fields"), .row("Transfer-Encoding in HTTP/1.0"),
            .row("Transfer-Encoding with a space before its colon")),
        BugClass(
            10, "folded fields", .test("A folded field is one value without line breaks"),
            .test("No line end and no NUL ever reaches the caller in a name, a value or a reason")),
        BugClass(
            11, "control bytes in heads", .row("A NUL in a value"), .row("A lone CR in a value"),
            .row("A line without a colon"), .row("An empty name"), .row("A space in a name")),
        BugClass(
            12, "unbounded heads", .row("An endless status line"), .row("An endless field value"),
            .row("Endless small fields"), .row("Endless large fields"),
            .test("A flood of whatever kind takes less than 20 MiB, and ends")),
        BugClass(
            13, "garbage in the status line", .row("A status of four digits"), .row("A status with a letter"),
            .row("A status of zeros"), .row("A status below 100"), .row("No space before the status"),
            .row("SSH"), .row("A page without a head"), .row("A TLS alert"), .row("An HTTP/0.9 answer")),
        BugClass(
            14, "interim responses", .row("A flood of early hints"), .row("Endless early hints"),
            .row("100 although nobody asked"), .row("101 although nobody asked"),
            .row("Ten early hints, whose fields must not leak"),
            .test("Fields of an early hint reach the caller as such, and not as the response's")),
        BugClass(
            15, "bodies that must not exist", .row("204 with a body"), .row("304 with chunks behind"),
            .row("HEAD with the body it speaks of"), .row("HEAD with chunks")),
        BugClass(
            16, "poisoning of the queue of responses", .row("A second response behind a length"),
            .row("A second response behind chunks"),
            .test("A response sent on an idle connection costs the connection and is never delivered"),
            .test("Bytes on an idle connection close it at once, without another request")),
    ]

    private static let connections = [
        BugClass(
            17, "stale connections", .test("A GET is sent once more, on a fresh connection"),
            .test("A POST whose bytes were written is not sent again"),
            .test("A POST of which no byte was written is sent again")),
        BugClass(
            18, "truncation", .row("Nothing"), .row("A body short of a byte"), .row("A reset in a body"),
            .test("A response that ends early, at whatever byte, is an error that says so"),
            .test(
                "A reset that the upload's writer sees first is a lost connection, whatever the reader found"),
            .test("A download that is cut leaves no file"), .awaits("the cache")),
        BugClass(
            19, "TLS cut without a close_notify",
            .test("A response that ends early, at whatever byte, is an error that says so"),
            .test(
                "A close-delimited body is truncated when the stream breaks off, as TLS without close_notify"),
            .test(
                "A server whose bytes end early, at whatever one of the handshake and the answer, is refused")
        ),
        BugClass(
            20, "integrity of gzip", .row("A gzip body short of a byte"),
            .row("A gzip body with another checksum"), .row("A gzip body with another length"),
            .row("A page that is called gzip"), .row("No byte of a gzip body"), .row("Two gzip members"),
            .row("Bytes behind a gzip body"),
            .test("A gzip body cut at any byte is an error although its length was met")),
        BugClass(
            21, "decompression bombs", .row("A gzip bomb"), .row("A bomb within a bomb"),
            .row("Twenty codings"), .row("Endless gzip members of no bytes"),
            .test("More than five codings are refused, in one field or in many"),
            .test("A bomb is stopped by its ratio, whether streamed or collected")),
        BugClass(
            22, "endless bodies", .row("A body without end that is collected"),
            .row("A body announced as 10^11 bytes"),
            .test("10 GiB pass through less than 16 MiB of memory"),
            .test(
                "An endless body that is streamed is held by the reader's pace, and ends when the reader has enough"
            )),
    ]

    private static let requests = [
        BugClass(
            23, "injection into requests",
            .test("Control bytes, backslashes and blanks at the ends of a URL are refused"),
            .test("No name or method with control bytes, blanks or a colon can even be made"),
            .test("A path of a request that was set with line breaks is one target in one line"),
            .test("Line breaks and NULs in a field of an HTTPRequest stay within its line"),
            .test("A Host that no host can be is refused"),
            .test(
                "A NUL or another control character is refused before anything is sent, and its place is named"
            ),
            .test("Names in UTF-8 stay, and what would end the quotes or the line is percent-encoded")),
        BugClass(
            24, "framing by the caller", .test("A Content-Length that is not the body's is refused"),
            .test("A Transfer-Encoding other than chunked alone is refused"),
            .test("A Transfer-Encoding beside a Content-Length is refused"),
            .test("A default field of the session cannot frame a request, and its Cookie is sent")),
    ]

    private static let aboveTheWire = [
        BugClass(
            25, "Authorization after a redirect", .test("No secret reaches a foreign origin"),
            .test("Fields of credentials stay at their origin, and those that were declared secret")),
        BugClass(
            26, "other secrets after a redirect", .test("No secret reaches a foreign origin"),
            .test("Fields of the session's defaults stay at the origin that calls begin at")),
        BugClass(
            27, "Digest across origins",
            .test("A challenge that was about to be answered at one origin is not answered at another"),
            .test("What one origin asked for is not answered to another, though both have credentials"),
            .test(
                "Credentials of the call are not sent to another origin, nor any more when the chain comes back"
            )),
        BugClass(
            28, "bearer tokens across schemes", .test("From https to http is refused unless it is allowed"),
            .test("Tokens are not sent to another origin, nor fetched for it")),
        BugClass(
            29, "credentials in URLs and Referer", .test("A URL that could lead elsewhere leads nowhere"),
            .test("A URL's description has no password"),
            .test("A name and a password in a URL are for its origin"),
            .test("User info in a location never becomes credentials")),
        BugClass(
            30, "dangerous schemes", .test("Something without http or https in front is refused"),
            .test("A reference with another scheme is refused"),
            .test("Schemes that are not http and https are refused")),
        BugClass(
            31, "loops of redirects",
            .test("A loop ends at the limit with an error that has the last redirect")),
        BugClass(
            32, "reading Location", .test("A host in a reference is parsed as strictly as any other"),
            .test("Two locations that differ are refused; two that are the same are one"),
            .test("Bytes that are no UTF-8 go on as they came, percent-encoded"),
            .test("A reference is resolved against the address it came from")),
        BugClass(
            33, "rewriting of methods", .test("The method after each status is that of RFC 9110"),
            .test("What describes a body goes with it"), .test("307 sends the body again, 303 does not")),
        BugClass(
            34, "redirects with endless bodies",
            .test("A redirect whose body never ends is followed at once, on another connection")),
        BugClass(
            35, "connections under other credentials",
            .test("A kept connection serves no view with other trust, identity or versions"),
            .test("A view with a client certificate has connections of its own"),
            .test("http and https to one port do not share"),
            .test("Connections with other credentials are not shared"),
            .test("Connections of other users are not shared")),
        BugClass(
            36, "TLS sessions under other settings",
            .test("TLS sessions are resumed within a view, and never by a view with other trust"),
            .test("Another context never resumes the session"),
            .test("A TLS session made in a tunnel is resumed in that tunnel's successors alone")),
        BugClass(
            37, "a verdict that is remembered",
            .test("A server accepted without a look is verified by the next view, whatever was kept"),
            .test("The host's name is verified by a view that does, after one that did not")),
    ]

    private static let trust = [
        BugClass(
            38, "names in certificates",
            .test("A wildcard is the whole left-most label and stands for one label"),
            .test("A wildcard never stands for an address"), .test("A name with a NUL in it fits no host"),
            .test("The subject's common name is no host name"),
            .test("An address among the host names does not count as an address"),
            .test("A certificate for other names is refused for this one")),
        BugClass(
            39, "chains of certificates", .test("An expired certificate is expired, not merely bad"),
            .test("A certificate of the future is not yet valid"),
            .test("A certificate whose extended key usage does not name servers is refused"),
            .test("A certificate outside the domains that its authority may sign for is refused"),
            .test("A chain with more authorities than one of them allows below itself is refused"),
            .test("A chain through a certificate that is no authority's is refused"),
            .test("A certificate that vouches for itself is self-signed"),
            .test("A key that is too short is refused, the server's or an authority's"),
            .test("A signature over a broken digest is refused")),
        BugClass(
            40, "domains of cookies", .test("A domain that is not the host's own is refused"),
            .test("No cookie is set for a public suffix, in whatever case it is written"),
            .test("An IP address has no domain above it and nothing below it"),
            .test("The port does not matter; a trailing dot is another host")),
        BugClass(
            41, "paths and prefixes of cookies",
            .test("A path goes to itself and below, not to what begins alike"),
            .test("A name with __Host- needs Secure, the path / in so many words, and no domain"),
            .test("A name with __Secure- needs Secure, in any case of its letters"),
            .test("Over http no cookie takes the place of a secure one, nor hides it")),
        BugClass(
            42, "floods of cookies", .test("Only the first fifty fields of a response are heeded"),
            .test("Name and value may have 4,096 bytes together, and no more"),
            .test("A registrable domain keeps 180 cookies, whatever hosts below it set them"),
            .test("A control character anywhere refuses the field, and its place is told")),
        BugClass(
            43, "Host as a key", .test("Cookies go by the address, whatever the Host field says"),
            .test("What is stored is found by the URL, whatever a Host field of the caller's says"),
            .test("What was sent under another Host is nobody else's")),
        BugClass(
            44, "a cache poisoned by others",
            .test("User B never gets what user A got, however they say who they are"),
            .test("Requests of different users are never answered by one, also where nothing is stored yet"),
            .test("Cookies that a stored answer set are not set again; those of a 304 are"),
            .test("An answer that was chosen by the cookies is for those cookies"),
            .test("Vary: * always goes to the network"),
            .test("What was made for a credential and no longer says that all may have it is not selected")),
        BugClass(
            45, "truncation kept in a cache",
            .test("C1: a body that is cut is an error, and nothing of it is stored or left"),
            .test("C1: a reader who stops in the middle ends the transfer, and nothing is stored or left"),
            .test("Bytes behind the announced length are no part of what is stored")),
        BugClass(
            46, "parts taken for the whole", .test("A part that the network gives is not stored"),
            .test("A part of what is stored whole and fresh is served with its exact bytes"),
            .test("If-Range decides between the part and the whole")),
        BugClass(
            47, "a cache that is not invalidated",
            .test("POST, PUT, PATCH and DELETE that succeed invalidate"),
            .test("Location and Content-Location are invalidated, too, at the same origin alone"),
            .test(
                "An older GET that is under way is not stored behind a PUT, and answers nobody who asks after it"
            )),
        BugClass(
            48, "dates and ages",
            .test("Freshness is told by the fields, and what is doubtful is asked for again"),
            .test("D18: whichever way a clock was set, nothing has a negative age or is fresh for ever"),
            .test("No moment, however far off, traps")),
    ]

    private static let machine = [
        BugClass(
            49, "paths out of a folder", .test("-O never leaves the folder"),
            .test("A dot at the beginning stays only where that is asked for"),
            .test("A name that is too long keeps its extension, and its characters stay whole"),
            .awaits("the download manager")),
        BugClass(
            50, "links in a folder", .test("A symbolic link in the target's place is replaced, not followed"),
            .test("A file that takes the name at the last moment is left alone"),
            .test("A file that has the name is left alone unless it may be replaced")),
        BugClass(51, "a resume of something else", .awaits("resumed downloads")),
        BugClass(
            52, "slow servers", .row("Silence behind the request"), .row("Silence in a body"),
            .row("A head byte by byte"), .row("A body byte by byte"), .row("Silence towards an upload"),
            .row("Silence for a hello"), .test("Connect: nobody answers"),
            .test("Pool wait: no connection becomes free")),
        BugClass(
            53, "SIGPIPE", .test("Writing after a reset is an error, and the process lives"),
            .test("Writing after an end is an error, and the process lives"),
            .test("Writing to a peer that is gone is an error and no signal")),
        BugClass(
            54, "leaks of descriptors",
            .test("A hostile peer is refused as its row says, and harms nothing else"),
            .test("A call that waits for its peer ends at once"),
            .test("A call that connects ends at once, and leaves no socket"),
            .test("A refused certificate closes both sockets")),
        BugClass(
            55, "descriptors used by another",
            .test("A descriptor stays open while a call uses it, though the socket is closed meanwhile"),
            .test("Closing from many threads at once, in the midst of calls, closes once")),
        BugClass(
            56, "continuations resumed twice or never",
            .test("Cancelling while the answer comes ends in one or the other, a thousand times"),
            .test("Of a thousand deliveries that race an interruption, each ends exactly one way"),
            .test("Cancelling ends calls wherever they are")),
        BugClass(
            57, "calls from within callbacks",
            .test("Calls may be started and cancelled from the progress of another"),
            .test("One may call the same session and host, with a single connection there")),
        BugClass(
            58, "confusion of proxies", .test("CONNECT says where to, who asks, and no more"),
            .test("A 407 is answered once, and no more"),
            .test("A 2xx has no body, whatever it announces, and interim answers may come first"),
            .test("A default Proxy-Authorization goes to the proxy alone")),
        BugClass(
            59, "URLs read in two ways", .test("A URL leads to one place"),
            .test("A URL that could lead elsewhere leads nowhere"), .test("User info never becomes the host"),
            .test("Every spelling of an IPv4 address becomes the dotted quad"),
            .test("A port must be digits within 1–65535")),
        BugClass(60, "HSTS under another spelling", .awaits("HSTS, which is not offered")),
        BugClass(
            61, "time that grows with the square",
            .test("A megabyte of commas in each list that is looked at is read in linear time"),
            .test("A head of 200 KiB that comes byte by byte costs no more than linear time"),
            .test("A huge input is dealt with at once")),
        BugClass(
            62, "secrets in errors and logs",
            .test(
                "A call that succeeds, and one that fails in each phase, say nothing of fields, body, fragment and secrets of the query"
            ),
            .test("A URL that is refused is not repeated"),
            .test("A request that is refused does not repeat its fields"),
            .test("-v shows no credentials")),
        BugClass(
            63, "pins past the verified chain",
            .test("A pinned certificate that is sent along, but is not on the verified path, does not count"),
            .test("A resumed connection is held to the pins")),
        BugClass(
            64, "proxies from a request's field",
            .test("HTTP_PROXY in capitals is what a client of a CGI program sent, and is never looked at")),
    ]
}
