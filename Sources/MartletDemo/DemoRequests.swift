import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization

enum DemoRequests {
    private struct Document: Codable, Equatable {
        var name: String
        var numbers: [Int]
    }

    static let steps = [
        Demo.Step(title: "GET a JSON document and decode it", run: getJSON),
        Demo.Step(title: "POST a value as JSON and decode the response", run: postJSON),
        Demo.Step(title: "GET a gzip-coded text, and a chunked body with a trailer", run: codings),
        Demo.Step(title: "Send ten GETs concurrently", run: concurrent),
        Demo.Step(title: "GET from the cache, and validate the stored response", run: cached),
        Demo.Step(title: "Coalesce ten equal GETs into one request", run: coalesced),
    ]

    private static func getJSON(_ stage: DemoEnvironment) async throws -> [String] {
        let exchange = try await stage.session.get(stage.origin.url("/json"))
        let document: Document = try exchange.decode()
        try check("the name", document.name, is: "martlet")
        guard let tls = exchange.metrics.connection?.tls else { throw DemoError("the connection does not use TLS") }
        return [
            "decoded \(document.name) \(document.numbers) over \(tls.version) with \(tls.cipher)",
            Timeline.line("GET /json \(exchange.response.status.code)", exchange.metrics),
        ]
    }

    private static func postJSON(_ stage: DemoEnvironment) async throws -> [String] {
        let sent = Document(name: "Apus apus", numbers: [3, 5, 8])
        let exchange = try await stage.session.post(stage.origin.url("/echo"), body: .json(sent))
        let report: EchoReport = try exchange.decode()
        let echoed = try JSONDecoder().decode(Document.self, from: Data((report.body ?? "").utf8))
        try check("the document", echoed, is: sent)
        try check("the type", report.header("content-type"), is: "application/json")
        try check(exchange.metrics.isConnectionReused, "the connection was not reused")
        return [
            "the origin received a \(report.method) with \(report.bodyLength) bytes of JSON",
            Timeline.line("POST /echo \(exchange.response.status.code)", exchange.metrics),
        ]
    }

    private static func codings(_ stage: DemoEnvironment) async throws -> [String] {
        let gzip = try await stage.session.get(stage.origin.url("/gzip")).validated()
        try check(gzip.text.hasPrefix("This text was sent"), "the text reads \(gzip.text)")
        let chunked = try await stage.session.get(stage.origin.url("/chunked/10000?size=999")).validated()
        try check("the mismatch", TestPattern.firstMismatch(in: chunked.body, at: 0), is: nil)
        try check("the length", chunked.body.count, is: 10_000)
        try check("the trailer", chunked.trailers?.first?.value, is: "10000")
        return [
            "gzip decoded: \(gzip.body.count) characters; chunks joined: \(chunked.body.count) bytes and a trailer",
            Timeline.line("GET /gzip 200", gzip.metrics), Timeline.line("GET /chunked/10000 200", chunked.metrics),
        ]
    }

    private static func concurrent(_ stage: DemoEnvironment) async throws -> [String] {
        // All responses wait for the last request, so sequential requests would never get a response.
        let (gate, opening) = AsyncStream.makeStream(of: Void.self)
        let opened = Task { for await _ in gate {} }
        let arrivals = Atomic(0)
        let handler = OriginHandler { _ in
            if arrivals.add(1, ordering: .relaxed).newValue == 10 { opening.finish() }
            await opened.value
            return .text("all have arrived")
        }
        return try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            // Also after an error: `withOrigin` waits for the handlers, and they wait for this.
            defer { opening.finish() }
            let url = origin.url("/")
            let start = ContinuousClock.now
            let codes = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<10 { group.addTask { try await stage.session.get(url).response.status.code } }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            let time = ContinuousClock.now - start
            try check("the list of statuses", codes, is: Array(repeating: 200, count: 10))
            return ["the origin responded after all ten had arrived; all ten took \(Timeline.milliseconds(time))"]
        }
    }

    private static func cached(_ stage: DemoEnvironment) async throws -> [String] {
        var content = OriginContent(body: .text("stored"), contentType: "text/plain", entityTag: "\"v1\"")
        content.headers.append("Cache-Control", "max-age=600")
        return try await TestOrigin.withOrigin(.plain, handler: .content(content)) { origin in
            let session = stage.session.with { $0.cache = .memoryOnly() }
            let calls: [(mode: CacheMode, source: HTTPExchange.Source, requestCount: Int)] = [
                (.standard, .network, 1), (.standard, .cache, 1), (.revalidate, .validatedCache, 2),
            ]
            var lines: [String] = []
            for (mode, source, requestCount) in calls {
                let options = RequestOptions { $0.cacheMode = mode }
                let exchange = try await session.get(origin.url("/"), options: options).validated()
                try check("the source", exchange.source, is: source)
                try check("the text", exchange.text, is: "stored")
                try check("the number of requests", origin.requests.count, is: requestCount)
                let time = Timeline.milliseconds(exchange.metrics.total)
                let title = "GET / \(exchange.response.status.code)"
                lines.append(
                    source == .cache ? "\(title) from the cache in \(time)" : Timeline.line(title, exchange.metrics))
            }
            try check("If-None-Match", origin.requests.last?.headers["If-None-Match"], is: "\"v1\"")
            return ["three calls, two requests: the second one, with If-None-Match, got a 304"] + lines
        }
    }

    private static func coalesced(_ stage: DemoEnvironment) async throws -> [String] {
        let handler = OriginHandler { _ in
            // The other calls start during the delay. A later one is served by the cache.
            .text("shared", headers: ["Cache-Control": "max-age=600"]).with { $0.delay = .milliseconds(200) }
        }
        return try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            let cache = ResponseCache.memoryOnly()
            let session = stage.session.with { $0.cache = cache }
            let url = origin.url("/")
            let texts = try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<10 { group.addTask { try await session.get(url).validated().text } }
                return try await group.reduce(into: [String]()) { $0.append($1) }
            }
            try check("the list of texts", texts, is: Array(repeating: "shared", count: 10))
            try check("the number of requests", origin.requests.count, is: 1)
            let statistics = cache.statistics
            return ["1 request; its transfer served \(statistics.shared) more calls, the cache \(statistics.hits)"]
        }
    }
}

/// The steps with the API of a host, and with a form that contains a file.
enum DemoHosts {
    static let steps = [
        Demo.Step(title: "Use a host: base path, fields, nested parameters, a typed endpoint", run: host),
        Demo.Step(title: "Send a form with a file and a known length", run: form),
    ]

    /// Parameters with an object, a list, and a character of seven code points.
    private struct Bird: Codable, Equatable, Sendable {
        var name = "Apus apus"
        var families = ["Apodidae", "Trochilidae"]
        var place = ["city": "Köln", "watchers": "👩‍👩‍👧‍👦"]

        static let encoded =
            "families=Apodidae&families=Trochilidae&name=Apus%20apus&place%5Bcity%5D=K%C3%B6ln"
            + "&place%5Bwatchers%5D=%F0%9F%91%A9%E2%80%8D%F0%9F%91%A9%E2%80%8D%F0%9F%91%A7%E2%80%8D%F0%9F%91%A6"
    }

    /// Adds a bird, as JSON regardless of the host's encoding.
    private struct AddBird: HTTPEndpoint {
        typealias Response = EchoReport
        typealias Parameters = Bird

        var bird: Bird
        var method: HTTPRequest.Method { .post }
        var path: String { "birds" }
        var parameters: Bird { bird }
        var encoding: ParameterEncoding? { .json }
    }

    private static func host(_ stage: DemoEnvironment) async throws -> [String] {
        let routes = OriginHandler.router { $0.any("/v2/birds", .echo) }
        return try await TestOrigin.withOrigin(.tls(.trusted), handler: routes) { origin in
            var api = try stage.session.host(
                origin.url("/v2"), headers: [.accept: "application/json", .userAgent: "Demo/1"])
            // Trust only for this host: the session does not know its authority.
            api.tls = TLSHostSettings(trust: .only(.text(origin.authorityPEM ?? "")))
            let bird = Bird()

            let got: EchoReport = try await api.get("/birds", query: bird).decode()
            try check("the path", got.path, is: "/v2/birds")
            try check("the query", got.query, is: Bird.encoded)
            try check("Accept", got.header("Accept"), is: "application/json")
            try check("User-Agent", got.header("User-Agent"), is: "Demo/1")

            let posted: EchoReport = try await api.post("birds", parameters: bird).decode()
            try check("the type", posted.header("Content-Type"), is: "application/x-www-form-urlencoded")
            try check("the form", posted.body, is: Bird.encoded)
            try check("the query of the POST", posted.query, is: nil)

            let added = try await api.call(AddBird(bird: bird))
            let sent = try JSONDecoder().decode(Bird.self, from: Data((added.body ?? "").utf8))
            try check("the added bird", sent, is: bird)
            try check("the endpoint's type", added.header("Content-Type"), is: "application/json")
            return [
                "GET \(got.path), with the host's fields, and the query", "  \(got.query ?? "")",
                "POST \(posted.path) of the same as a form of \(posted.bodyLength) bytes",
                "AddBird, an endpoint, as JSON: \(added.body ?? "")",
            ]
        }
    }

    private static func form(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 6 << 20
        let path = stage.directory.appending("colony.bin")
        let file = try FileDescriptor.open(
            path, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll(TestPattern.bytes(from: 0, count: size)) }
        let form = HTTPBody.multipart {
            $0.field("title", "Swifts \"above\" Köln")
            $0.file("recording", at: path)
        }
        let task = await stage.session.task(for: try stage.request(.post, "/upload"), body: form)
        var states: [TransferProgress] = []
        for await progress in task.uploadProgress { states.append(progress) }
        let exchange = try await task.value
        let report: UploadReport = try exchange.decode()
        let announced = stage.origin.requests.last { $0.target == "/upload" }?.headers["Content-Length"]
        try check("Content-Length", announced, is: "\(report.length)")
        let framing = report.length - UInt64(size)
        try check((200..<1000).contains(framing), "the form has \(framing) bytes besides the file")
        let counts = states.map(\.completedByteCount)
        try check("the order of the progress", counts, is: counts.sorted())
        let last = TransferProgress(completedByteCount: report.length, totalByteCount: report.length, isFinished: true)
        try check("the last progress", states.last, is: last)
        let parts = states.map { "\(Int(($0.fractionCompleted ?? 0) * 100)) %" }
        return [
            "\(report.length) bytes announced and received, \(framing) of them besides the file",
            "progress: \(picked(parts).joined(separator: ", "))", Timeline.line("POST /upload 200", exchange.metrics),
        ]
    }

    /// At most five of the texts, evenly spaced and including the last, without equal neighbors.
    private static func picked(_ texts: [String]) -> [String] {
        let step = max(1, (texts.count + 3) / 4)
        return texts.indices.filter { $0 % step == 0 || $0 == texts.count - 1 }.reduce(into: [String]()) {
            if $0.last != texts[$1] { $0.append(texts[$1]) }
        }
    }
}
