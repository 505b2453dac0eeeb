import HTTPTypes
public import SystemPackage

/// The routes of `martlet serve` and `martlet demo`. Each one tests a feature of a client. `/` lists them.
public struct StandardRoutes: Sendable {
    /// The directory below `/files/`; `nil` for none.
    public var directory: FilePath?
    /// The validators of files.
    public var validators: FileValidators

    /// Creates the routes.
    public init(directory: FilePath? = nil, validators: FileValidators = .strong) {
        (self.directory, self.validators) = (directory, validators)
    }

    /// Path and purpose of each route, in the order of the index.
    public static let list: [(path: String, purpose: String)] =
        [
            ("/echo", "returns the request as JSON"), ("/mirror", "streams the request's body back"),
            ("/upload", "accepts a body of any length; returns its length and CRC-32"),
            ("/json", "a small JSON document"),
            ("/bytes/N", "N bytes with their length; ranges and validators"),
            ("/chunked/N", "N bytes in chunks; ?size=BYTES, 4096 by default, and a trailer"),
            ("/gzip", "a text coded as gzip"), ("/deflate", "a text coded as deflate"),
            ("/drip/N", "N bytes slowly; ?rate=BYTES a second, 10 by default"),
            ("/redirect/N", "N redirects, 100 at most; ?status=CODE, 302 by default"),
            ("/count", "counts its requests"), ("/hints", "a 103 with a Link, then the response"),
            ("/files/PATH", "a file of the served directory"), ("/stall", "never responds"),
            ("/stall/N", "stops after N bytes and keeps the connection"),
            ("/reset", "resets the connection instead of a response"),
            ("/reset/N", "resets the connection after N bytes"),
            ("/truncate/N", "closes after N bytes of 2N; ?chunked: inside a chunk"),
            ("/cut/N", "N bytes that end with the connection; over TLS without a close_notify"),
        ] + HTTPBinRoutes.list

    /// The routes as a handler. Each call creates a new counter.
    public var handler: OriginHandler {
        .router { router in
            let items = StandardRoutes.list.map { "<code>\($0.path)</code>: \(StaticFileHandler.escaped($0.purpose))" }
            router.get("/", .fixed(.page("Martlet test origin", items: items)))
            addRequests(to: &router)
            addBodies(to: &router)
            addFaults(to: &router)
            HTTPBinRoutes.add(to: &router)
            if let directory { router.any("/files/{path...}", .files(in: directory, validators: validators)) }
        }
    }

    private func addRequests(to router: inout OriginRouter) {
        router.any("/echo", .echo)
        router.any("/mirror", .mirror)
        router.any("/upload", .upload)
        router.any("/count", .counter())
        router.on(nil, "/redirect/{number}", in: 0...100) { request, count in
            guard count > 0 else { return .fixed(.text("arrived\n")) }
            let status = request.queryNumber("status") ?? 302
            return .redirect(
                to: "/redirect/\(count - 1)\(request.query.suffix)", status: (300...399).contains(status) ? status : 302
            )
        }
        router.get("/hints") { _ in
            .text("hinted\n").with { $0.interim = [.earlyHints("</style.css>; rel=preload; as=style")] }
        }
    }

    private func addBodies(to router: inout OriginRouter) {
        let document = """
            {"name":"martlet","numbers":[1,2,3],"nested":{"text":"Schwalbe \\u2014 燕","true":true}}

            """
        let text = Array("This text was sent with a content coding and should read like any other.\n".utf8)
        router.get("/json", .fixed(.json(text: document)))
        router.get("/gzip", .fixed(.encoded(StoredCoding.gzip(text), coding: "gzip")))
        router.get("/deflate", .fixed(.encoded(StoredCoding.zlib(text), coding: "deflate")))
        router.on(.get, "/bytes/{number}") { _, count in .bytes(UInt64(count)) }
        router.on(.get, "/chunked/{number}") { request, count in
            let size = request.queryNumber("size") ?? 4096
            return .fixed(
                OriginResponse.pattern(UInt64(count)).with {
                    $0.framing = .chunked(size: max(1, size))
                    $0.trailers = ["X-Body-Length": "\(count)"]
                })
        }
        router.on(.get, "/drip/{number}") { request, count in
            .drip(UInt64(count), bytesPerSecond: request.queryNumber("rate") ?? 10)
        }
    }

    private func addFaults(to router: inout OriginRouter) {
        router.any("/stall", .fault(OriginFault(.stall)))
        router.any("/reset", .fault(OriginFault(.reset)))
        let faults: [(String, OriginFault.Kind)] = [
            ("/stall", .stall), ("/reset", .reset), ("/truncate", .close), ("/cut", .cut),
        ]
        for (path, kind) in faults {
            // The body has twice the number of bytes, and the fault happens in the middle.
            router.on(.get, "\(path)/{number}", in: 0...Int(Int32.max)) { request, number in
                let count = UInt64(number)
                var response = OriginResponse.pattern(max(1, 2 * count))
                if request.query["chunked"] != nil { response.framing = .chunked() }
                if kind == .cut { response.framing = .untilClose }
                return .fault(OriginFault(kind, afterBodyBytes: count), in: response)
            }
        }
    }
}

extension OriginRequest { func queryNumber(_ name: String) -> Int? { query[name].flatMap { Int($0) } } }

extension OriginRouter {
    /// Adds a route whose placeholder `{number}` is a number in a range; other values are a 400.
    mutating func on(
        _ method: HTTPRequest.Method?, _ pattern: String, in range: ClosedRange<Int> = 0...Int.max,
        _ handler: @escaping @Sendable (OriginRequest, Int) -> OriginHandler
    ) {
        let checked = OriginHandler { request in
            guard let number = request.number(of: "number"), range.contains(number) else {
                return .text("\(request.path): a number is missing or out of range\n", status: 400)
            }
            return try await handler(request, number).respond(to: request)
        }
        on(method, pattern, checked)
    }
}
