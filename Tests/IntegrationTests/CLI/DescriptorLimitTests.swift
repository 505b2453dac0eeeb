import Foundation
import MartletTesting
import Testing

@Suite("A process without descriptors")
struct DescriptorLimitTests {
    private static let limit = 96

    @Test(
        "With more requests than descriptors some get a response, others an error, and the program continues"
    )
    func tooManyRequests() async throws {
        // No response is sent before the line after all requests was processed: by then those without a descriptor have
        // failed.
        let late = Gate()
        try await TestOrigin.withOrigin { _ in
            await late.pass()
            return .text("late")
        } run: { origin in
            defer { late.open() }
            let lines =
                (1...150).map { "{\"seq\":\($0),\"op\":\"fetch\",\"url\":\"\(origin.url("/"))\"}\n" }
                + ["{\"seq\":151,\"op\":\"stats\"}\n"]
            let command = "ulimit -n \(Self.limit); exec \"$0\" batch --parallel 100 --connect-timeout 300"
            let run = try await Program.run(
                "sh", ["-c", command, Program.path], input: Array(lines.joined().utf8), in: nil
            ) { running in
                try await running.waitForOutput("\"seq\":151")
                late.open()
            }
            #expect(run.status == 0, "\(run.errors)")
            let replies = run.text.split(separator: "\n")
            let answered = replies.filter { $0.contains("\"status\":200") }
            let rejected = replies.filter { $0.contains("\"error\":\"other\"") && $0.contains("open files") }
            #expect(replies.count == 151)
            #expect(answered.count + rejected.count == 150, "\(replies.first ?? "")")
            #expect(answered.count >= 20)
            #expect(!rejected.isEmpty)
            // Connections leave some descriptors free: for the runtime, which traps without them, and for the process
            // that counts them here.
            let counts = try #require(replies.first { $0.contains("\"seq\":151") })
            let object = try JSONSerialization.jsonObject(with: Data(counts.utf8)) as? [String: Any]
            let open = try #require(object?["descriptors"] as? Int, "\(counts)")
            #expect(open > Self.limit / 2)
            #expect(open <= Self.limit - 2)
        }
    }
}
