import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization

/// The steps with small requests.
enum DemoRequests {
    private struct Document: Codable {
        var name: String
        var numbers: [Int]
    }

    static let steps = [
        Demo.Step(title: "GET a JSON document and decode it", run: getJSON),
        Demo.Step(title: "POST a value as JSON and decode the answer", run: postJSON),
        Demo.Step(title: "GET a text that comes as gzip, and one in chunks with a trailer", run: codings),
        Demo.Step(title: "Ten GETs at a time", run: concurrent),
    ]

    private static func getJSON(_ stage: DemoEnvironment) async throws -> [String] {
        let exchange = try await stage.session.get(stage.origin.url("/json"))
        let document: Document = try exchange.decode()
        try check(document.name == "martlet", "the name is \(document.name)")
        try check(exchange.metrics.connection?.tls != nil, "the connection is not by TLS")
        let tls = exchange.metrics.connection?.tls
        return [
            "decoded \(document.name) \(document.numbers) over \(tls?.version ?? "?") with \(tls?.cipher ?? "?")",
            Timeline.line("GET /json \(exchange.response.status.code)", exchange.metrics),
        ]
    }

    private static func postJSON(_ stage: DemoEnvironment) async throws -> [String] {
        let sent = Document(name: "Apus apus", numbers: [3, 5, 8])
        let exchange = try await stage.session.post(stage.origin.url("/echo"), body: .json(sent))
        let report: EchoReport = try exchange.decode()
        let echoed = try JSONDecoder().decode(Document.self, from: Data((report.body ?? "").utf8))
        try check(echoed.name == sent.name && echoed.numbers == sent.numbers, "another document came back")
        let type = report.header("content-type") ?? "none"
        try check(type == "application/json", "the type was \(type)")
        try check(exchange.metrics.isConnectionReused, "the connection was not used again")
        return [
            "the origin saw \(report.method) with \(report.bodyLength) bytes of \(type)",
            Timeline.line("POST /echo \(exchange.response.status.code)", exchange.metrics),
        ]
    }

    private static func codings(_ stage: DemoEnvironment) async throws -> [String] {
        let gzip = try await stage.session.get(stage.origin.url("/gzip")).validated()
        try check(gzip.text.hasPrefix("This text was sent"), "the text reads \(gzip.text)")
        let chunked = try await stage.session.get(stage.origin.url("/chunked/10000?size=999")).validated()
        try check(
            TestPattern.firstMismatch(in: chunked.body, at: 0) == nil && chunked.body.count == 10_000,
            "the chunks were put together wrongly")
        let trailer = chunked.trailers?.first?.value
        try check(trailer == "10000", "the trailer is \(trailer ?? "missing")")
        return [
            "gzip undone: \(gzip.body.count) characters of text; chunks joined: \(chunked.body.count) bytes and a trailer",
            Timeline.line("GET /gzip 200", gzip.metrics),
            Timeline.line("GET /chunked/10000 200", chunked.metrics),
        ]
    }

    private static func concurrent(_ stage: DemoEnvironment) async throws -> [String] {
        // All responses wait for the last request: sequential requests would never get one.
        let (door, opening) = AsyncStream.makeStream(of: Void.self)
        let opened = Task { for await _ in door {} }
        let arrivals = Atomic(0)
        let handler = OriginHandler { _ in
            if arrivals.add(1, ordering: .relaxed).newValue == 10 { opening.finish() }
            await opened.value
            return .text("all are there")
        }
        return try await TestOrigin.withOrigin(.plain, handler: handler) { origin in
            // In any case, since an origin stops only after its handlers have ended.
            defer { opening.finish() }
            let url = origin.url("/")
            let start = ContinuousClock.now
            let codes = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<10 { group.addTask { try await stage.session.get(url).response.status.code } }
                return try await group.reduce(into: [Int]()) { $0.append($1) }
            }
            let time = ContinuousClock.now - start
            try check(codes == Array(repeating: 200, count: 10), "the statuses are \(codes)")
            return [
                "the origin answered none before all ten had come; all ten took \(Timeline.milliseconds(time))"
            ]
        }
    }
}
