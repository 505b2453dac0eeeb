import Foundation
import Testing

@Suite("The end of a process while calls run")
struct ProcessExitTests {
    /// How often a process is ended; `MARTLET_EXIT_COUNT` sets another number.
    private static let count =
        ProcessInfo.processInfo.environment["MARTLET_EXIT_COUNT"].flatMap(Int.init) ?? 40

    @Test("A process that exits while calls set up TLS ends by no signal, and does not hang")
    func exitAmidTLS() async throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<Self.count {
            let delay = UInt32.random(in: 0...60_000, using: &random)
            let status = try await ClientChild.run(["exit", String(delay)]).status
            #expect(status == 0, "exit after \(delay) µs")
        }
    }
}
