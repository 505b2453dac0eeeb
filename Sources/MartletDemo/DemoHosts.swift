import FoundationEssentials
import Martlet
import MartletTesting

/// The steps with services: their paths, fields and parameters, and forms with files.
enum DemoHosts {
    static let steps = [
        Demo.Step(title: "Ask a host: base path, fields, nested parameters, a typed endpoint", run: host),
        Demo.Step(title: "Send a form with a file, of a length that is known before", run: form),
    ]

    /// Nested parameters, lists, and a character of seven code points.
    private struct Bird: Codable, Equatable, Sendable {
        var name = "Apus apus"
        var families = ["Apodidae", "Trochilidae"]
        var place = ["city": "Köln", "watchers": "👩‍👩‍👧‍👦"]

        /// The default encoding.
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
            try check(got.path == "/v2/birds", "the path was \(got.path)")
            try check(got.query == Bird.encoded, "the query was \(got.query ?? "missing")")
            let fields = [got.header("Accept"), got.header("User-Agent")]
            try check(fields == ["application/json", "Demo/1"], "the fields were \(fields)")

            let posted: EchoReport = try await api.post("birds", parameters: bird).decode()
            let type = posted.header("Content-Type") ?? "none"
            try check(type == "application/x-www-form-urlencoded", "the type was \(type)")
            try check(posted.body == Bird.encoded && posted.query == nil, "the form is another")

            let added = try await api.call(AddBird(bird: bird))
            let sent = try JSONDecoder().decode(Bird.self, from: Data((added.body ?? "").utf8))
            try check(sent == bird, "another bird was added: \(added.body ?? "none")")
            let json = added.header("Content-Type") ?? "none"
            try check(json == "application/json", "the endpoint's type was \(json)")
            return [
                "GET \(got.path), with the host's fields, and the query", "  \(got.query ?? "")",
                "POST \(posted.path) with the same as a form of \(posted.bodyLength) bytes",
                "AddBird, an endpoint, as JSON: \(added.body ?? "")",
            ]
        }
    }

    private static func form(_ stage: DemoEnvironment) async throws -> [String] {
        let size = 6 << 20
        let path = stage.folder.appending("colony.bin")
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
        let announced = stage.origin.requests.last { $0.target == "/upload" }?.fields["Content-Length"]
        try check(
            announced == "\(report.length)", "\(announced ?? "nothing") was announced, not \(report.length)")
        let framing = report.length - UInt64(size)
        try check((200..<1000).contains(framing), "\(framing) bytes stand around the file")
        let counts = states.map(\.completedByteCount)
        let grows = zip(counts, counts.dropFirst()).allSatisfy { $0 <= $1 }
        try check(grows, "the progress went back")
        try check(
            states.last
                == TransferProgress(
                    completedByteCount: report.length, totalByteCount: report.length, isFinished: true),
            "the last progress was \(states.last.map { "\($0)" } ?? "none")")
        let parts = states.map { "\(Int(($0.fractionCompleted ?? 0) * 100)) %" }
        return [
            "\(report.length) bytes announced and counted by the origin, \(framing) of them around the file",
            "newest progress, as often as it was asked for: \(picked(parts).joined(separator: ", "))",
            Timeline.line("POST /upload 200", exchange.metrics),
        ]
    }

    /// At most five of many texts, including the last, without repetitions.
    private static func picked(_ texts: [String]) -> [String] {
        var picked: [String] = []
        let step = max(1, (texts.count + 3) / 4)
        for index in texts.indices where index % step == 0 || index == texts.count - 1 {
            if picked.last != texts[index] { picked.append(texts[index]) }
        }
        return picked
    }
}
