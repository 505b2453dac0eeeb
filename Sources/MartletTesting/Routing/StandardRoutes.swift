public import SystemPackage

/// The routes of `martlet serve` and `martlet demo`: one for each thing a client must get right, and an index
/// that lists them.
public struct StandardRoutes: Sendable {
    /// The directory below `/files/`; `nil`: there is none.
    public var directory: FilePath?
    /// What is told of the versions of files.
    public var validators: FileValidators

    /// The routes.
    public init(directory: FilePath? = nil, validators: FileValidators = .strong) {
        self.directory = directory
        self.validators = validators
    }

    /// Path and purpose of each route, in the order of the index.
    public static let list: [(path: String, purpose: String)] = [
        ("/echo", "tells the request back as JSON"), ("/mirror", "sends the request's body back as it comes"),
        ("/upload", "takes a body of any length; tells its length and CRC-32"),
        ("/headers", "the request's field lines as text"), ("/json", "a small JSON document"),
        ("/bytes/N", "N bytes with their length; ranges and validators"),
        ("/chunked/N", "N bytes in chunks; ?size=BYTES, 4096 by default, and a trailer"),
        ("/gzip", "a text coded as gzip"), ("/deflate", "a text coded as deflate"),
        ("/delay/MS", "answers after so many milliseconds, a day at most"),
        ("/drip/N", "N bytes slowly; ?rate=BYTES a second, 10 by default"),
        ("/status/CODE", "answers with a status"),
        ("/redirect/N", "N redirects, then an answer; ?status=CODE, 302 by default"),
        ("/count", "counts its requests"), ("/hints", "a 103 with a Link, then an answer"),
        ("/files/PATH", "a file of the served directory"), ("/stall", "never answers"),
        ("/stall/N", "stops after N bytes and keeps the connection"),
        ("/reset", "resets the connection instead of an answer"),
        ("/reset/N", "resets the connection after N bytes"),
        ("/truncate/N", "closes after N bytes of 2N; ?chunked: in the midst of a chunk"),
        ("/cut/N", "N bytes that end with the connection; over TLS without a close_notify"),
    ]

    /// The routes as a handler. Each call starts the counter anew.
    public var handler: OriginHandler {
        .router { router in
            router.get("/") { _ in StandardRoutes.index }
            addRequests(to: &router)
            addBodies(to: &router)
            addTiming(to: &router)
            addFaults(to: &router)
            if let directory { router.any("/files/{path...}", .files(in: directory, validators: validators)) }
        }
    }

    private func addRequests(to router: inout OriginRouter) {
        router.any("/echo", .echo)
        router.any("/mirror", .mirror)
        router.any("/upload", .upload)
        router.any("/headers", .headers)
        router.any("/count", .counter())
        router.on(nil, "/status/{number}", in: 200...999) { _, code in
            .text("\(code) \(StatusPhrase.of(code))\n", status: code)
        }
        router.on(nil, "/redirect/{number}") { request, count in
            let status = request.queryValue(of: "status").flatMap { Int($0) } ?? 302
            guard count > 0 else { return .text("arrived\n") }
            let query = request.query.map { "?\($0)" } ?? ""
            return .redirect(
                to: "/redirect/\(count - 1)\(query)", status: (300...399).contains(status) ? status : 302)
        }
        router.get("/hints") { _ in
            .text("hinted\n").with { $0.interim = [.earlyHints("</style.css>; rel=preload; as=style")] }
        }
    }

    private func addBodies(to router: inout OriginRouter) {
        router.get("/json", .fixed(.json(text: StandardRoutes.document)))
        router.get("/gzip", .fixed(.encoded(StoredCoding.gzip(StandardRoutes.text), coding: "gzip")))
        router.get("/deflate", .fixed(.encoded(StoredCoding.zlib(StandardRoutes.text), coding: "deflate")))
        router.on("GET", "/bytes/{number}") { request, count in
            OriginContent(body: .pattern(UInt64(count)), entityTag: "\"pattern-\(count)\"")
                .response(to: request)
        }
        router.on("GET", "/chunked/{number}") { request, count in
            let size = request.queryValue(of: "size").flatMap { Int($0) } ?? 4096
            return OriginResponse.pattern(UInt64(count)).with {
                $0.framing = .chunked(size: max(1, size))
                $0.trailers = ["X-Body-Length": "\(count)"]
            }
        }
    }

    private func addTiming(to router: inout OriginRouter) {
        router.on(nil, "/delay/{number}", in: 0...86_400_000) { _, delay in
            .text("waited \(delay) ms\n").with { $0.delay = .milliseconds(delay) }
        }
        router.on("GET", "/drip/{number}") { request, count in
            let rate = request.queryValue(of: "rate").flatMap { Int($0) } ?? 10
            return OriginResponse.pattern(UInt64(count)).with { $0.pacing = .bytesPerSecond(rate) }
        }
    }

    private func addFaults(to router: inout OriginRouter) {
        router.any("/stall", .fault(OriginFault(.stall)))
        router.any("/reset", .fault(OriginFault(.reset)))
        addFault("/stall/{number}", .stall, to: &router) { _ in }
        addFault("/reset/{number}", .reset, to: &router) { _ in }
        addFault("/truncate/{number}", .close, to: &router) { _ in }
        addFault("/cut/{number}", .cut, to: &router) { $0.framing = .untilClose }
    }

    /// Adds a route whose body of twice the number of bytes goes wrong in the middle.
    private func addFault(
        _ pattern: String, _ kind: OriginFault.Kind, to router: inout OriginRouter,
        _ change: @escaping @Sendable (inout OriginResponse) -> Void
    ) {
        router.on("GET", pattern, in: 0...Int(Int32.max)) { request, number in
            let count = UInt64(number)
            var response = OriginResponse.pattern(max(1, 2 * count))
            response.fault = OriginFault(kind, afterBodyBytes: count)
            if request.queryItems.contains(where: { $0.name == "chunked" }) { response.framing = .chunked() }
            change(&response)
            return response
        }
    }

    private static let document = """
        {"name":"martlet","numbers":[1,2,3],"nested":{"text":"Schwalbe \\u2014 燕","true":true}}

        """

    private static let text = Array(
        "This text was sent with a content coding and should read like any other.\n".utf8)

    private static var index: OriginResponse {
        let lines = list.map { "<li><code>\($0.path)</code>: \(DirectoryListing.escaped($0.purpose))</li>\n" }
        return OriginResponse(
            fields: ["Content-Type": "text/html; charset=utf-8"],
            body: .text(
                "<!doctype html>\n<title>Martlet test origin</title>\n<h1>Martlet test origin</h1>\n<ul>\n"
                    + lines.joined() + "</ul>\n"))
    }
}

extension OriginRouter {
    /// Adds a route whose placeholder `{number}` stands for a number in a range; other paths are a 400.
    fileprivate mutating func on(
        _ method: String?, _ pattern: String, in range: ClosedRange<Int> = 0...Int.max,
        _ respond: @escaping @Sendable (OriginRequest, Int) -> OriginResponse
    ) {
        let handler = OriginHandler { request in
            guard let number = request.number(of: "number"), range.contains(number) else {
                return .text("\(request.path): a number is missing or out of range\n", status: 400)
            }
            return respond(request, number)
        }
        on(method, pattern, handler)
    }
}
