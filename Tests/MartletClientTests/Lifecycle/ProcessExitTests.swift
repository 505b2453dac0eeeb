import Foundation
import Testing

@Suite("Process exit with running calls")
struct ProcessExitTests {
    /// The number of exiting processes; `MARTLET_EXIT_COUNT` overrides the default.
    private static let count =
        ProcessInfo.processInfo.environment["MARTLET_EXIT_COUNT"].flatMap(Int.init) ?? 40

    @Test("A process that exits during TLS handshakes ends without a signal and does not hang")
    func exitAmidTLS() async throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<Self.count {
            let delay = UInt32.random(in: 0...60_000, using: &random)
            let status = try await ClientChild.run(["exit", String(delay)]).status
            #expect(status == 0, "exit after \(delay) µs")
        }
    }
}
