import Glibc
import Martlet
import MartletTesting

/// What a process does in a network whose addresses go: it opens connections from one of them to an origin of its own, one
/// that idles and one on which a call waits for its answer, and says when they are closed.
///
/// It says `open` once both are there and its session follows the network, then why the call has failed, and `closed`.
struct AddressWork: Sendable {
    /// The address that connections are made from.
    let address: String

    /// Waits until all is closed. Whoever started it ends it where that never comes.
    func run() async throws {
        try await TestOrigin.withOrigin { request in
            if request.path == "/slow" { try await Task.sleep(for: .seconds(100_000)) }
            return .text("x")
        } run: { origin in
            let session = HTTPSession(configuration: configuration)
            let base = "http://127.0.0.1:\(origin.port)"
            let call = Task { try await session.get(base + "/slow").text }
            try await pause(until: { session.diagnostics.pool.leased == 1 })
            _ = try await session.get(base + "/")
            try await pause(until: { session.networkCondition != .unknown })
            say("open")
            do {
                say("answered: \(try await call.value)")
            } catch let error as HTTPError {
                say("lost: \(error.code) \(error.message)")
            }
            try await pause(until: { session.diagnostics.pool.idle == 0 })
            say("closed")
        }
    }

    /// Says a line at once: it is read while this runs.
    private func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }

    private var configuration: SessionConfiguration {
        var configuration = SessionConfiguration.ephemeral
        let long = Duration.seconds(100_000)
        configuration.timeouts = Timeouts(connect: long, head: long, idle: long)
        configuration.socketOptions.localAddress = address
        configuration.networkMonitor = .system
        configuration.proxy = .none
        return configuration
    }

    /// A look every few milliseconds: nothing outside of a session tells of its connections.
    private func pause(until isThere: () -> Bool) async throws {
        while !isThere() { try await Task.sleep(for: .milliseconds(5)) }
    }
}
