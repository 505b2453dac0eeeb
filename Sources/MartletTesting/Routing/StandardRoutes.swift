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
        ("/echo", "tells the request back as JSON"),
        ("/mirror", "sends the request's body back as it comes"),
        ("/upload", "takes a body of any length; tells its length and CRC-32"),
        ("/headers", "the request's field lines as text"),
        ("/json", "a small JSON document"),
        ("/bytes/N", "N bytes with their length; ranges and validators"),
        ("/chunked/N", "N bytes in chunks; ?size=BYTES, 4096 by default, and a trailer"),
        ("/gzip", "a text coded as gzip"),
        ("/deflate", "a text coded as deflate"),
        ("/delay/MS", "answers after so many milliseconds, a day at most"),
        ("/drip/N", "N bytes slowly; ?rate=BYTES a second, 10 by default"),
        ("/status/CODE", "answers with a status"),
        ("/redirect/N", "N redirects, then an answer; ?status=CODE, 302 by default"),
        ("/count", "counts its requests"),
        ("/hints", "a 103 with a Link, then an answer"),
        ("/files/PATH", "a file of the served directory"),
        ("/stall", "never answers"),
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
            if let directory {
                router.any("/files/{path...}", .files(in: directory, validators: validators))
            }
        }
    }

    private func addRequests(to router: inout OriginRouter) {
        router.any("/echo", .echo)
        router.any("/mirror", .mirror)
        router.any("/upload", .upload)
        router.any("/headers", .headers)
        router.any("/count", .counter())
        router.any("/status/{code}") { request in
            guard let code = request.number(of: "code"), (200...999).contains(code) else {
                return StandardRoutes.notANumber(request)
            }
            return .text("\(code) \(StatusPhrase.of(code))\n", status: code)
        }
        router.any("/redirect/{count}") { request in
            guard let count = request.number(of: "count") else { return StandardRoutes.notANumber(request) }
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
        router.get("/bytes/{count}") { request in
            guard let count = request.number(of: "count") else { return StandardRoutes.notANumber(request) }
            return OriginContent(body: .pattern(UInt64(count)), entityTag: "\"pattern-\(count)\"")
                .response(to: request)
        }
        router.get("/chunked/{count}") { request in
            guard let count = request.number(of: "count") else { return StandardRoutes.notANumber(request) }
            let size = request.queryValue(of: "size").flatMap { Int($0) } ?? 4096
            return OriginResponse.pattern(UInt64(count)).with {
                $0.framing = .chunked(size: max(1, size))
                $0.trailers = ["X-Body-Length": "\(count)"]
            }
        }
    }

    private func addTiming(to router: inout OriginRouter) {
        router.any("/delay/{milliseconds}") { request in
            guard let delay = request.number(of: "milliseconds"), delay <= 86_400_000 else {
                return StandardRoutes.notANumber(request)
            }
            return .text("waited \(delay) ms\n").with { $0.delay = .milliseconds(delay) }
        }
        router.get("/drip/{count}") { request in
            guard let count = request.number(of: "count") else { return StandardRoutes.notANumber(request) }
            let rate = request.queryValue(of: "rate").flatMap { Int($0) } ?? 10
            return OriginResponse.pattern(UInt64(count)).with { $0.pacing = .bytesPerSecond(rate) }
        }
    }

    private func addFaults(to router: inout OriginRouter) {
        router.any("/stall", .fault(OriginFault(.stall)))
        router.any("/reset", .fault(OriginFault(.reset)))
        addFault("/stall/{count}", .stall, to: &router) { _ in }
        addFault("/reset/{count}", .reset, to: &router) { _ in }
        addFault("/truncate/{count}", .close, to: &router) { _ in }
        addFault("/cut/{count}", .cut, to: &router) { $0.framing = .untilClose }
    }

    /// Adds a route whose body of twice the number of bytes goes wrong in the middle.
    private func addFault(
        _ pattern: String, _ kind: OriginFault.Kind, to router: inout OriginRouter,
        _ change: @escaping @Sendable (inout OriginResponse) -> Void
    ) {
        router.get(pattern) { request in
            guard let number = request.number(of: "count"), let count = UInt64(exactly: number),
                count <= UInt64(Int32.max)
            else { return StandardRoutes.notANumber(request) }
            var response = OriginResponse.pattern(max(1, 2 * count))
            response.fault = OriginFault(kind, afterBodyBytes: count)
            if request.queryItems.contains(where: { $0.name == "chunked" }) { response.framing = .chunked() }
            change(&response)
            return response
        }
    }

    private static func notANumber(_ request: OriginRequest) -> OriginResponse {
        .text("\(request.path): a number is missing or out of range\n", status: 400)
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
