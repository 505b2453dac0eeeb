import MartletTesting
import Testing

@Suite("A process without descriptors")
struct DescriptorLimitTests {
    @Test(
        "More requests than descriptors: some are answered, the others fail in words, and the program goes on"
    )
    func tooManyRequests() async throws {
        try await TestOrigin.withOrigin(handler: .delay(.milliseconds(300))) { origin in
            let lines = (1...150).map { "{\"seq\":\($0),\"op\":\"fetch\",\"url\":\"\(origin.url("/"))\"}\n" }
            let run = try await Program.run(
                "sh", ["-c", "ulimit -n 48; exec \"$0\" batch --parallel 100", Program.path],
                input: Array(lines.joined().utf8), in: nil, environment: [])
            #expect(run.status == 0, "\(run.errors)")
            let replies = run.text.split(separator: "\n")
            let answered = replies.filter { $0.contains("\"status\":200") }
            let refused = replies.filter { $0.contains("\"error\":\"other\"") && $0.contains("open files") }
            #expect(replies.count == 150)
            #expect(answered.count + refused.count == 150, "\(replies.first ?? "")")
            #expect(answered.count >= 20)
            #expect(!refused.isEmpty)
        }
    }
}
