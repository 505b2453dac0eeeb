import Glibc
import Martlet
import MartletTesting

/// Work in a network whose addresses are removed. The process opens two connections from one address to its own origin:
/// one is idle, and one has a call that waits for its response. It reports when they are closed.
///
/// It writes `open` once both exist and its session follows the network, then the error of the call, and `closed`.
struct AddressWork: Sendable {
    /// The local address of the connections.
    let address: String

    /// Waits until all connections are closed. The parent ends the process if that never happens.
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

    /// Writes a line without buffering: it is read while this process runs.
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

    /// Polls every few milliseconds: a session does not report its connections.
    private func pause(until isThere: () -> Bool) async throws {
        while !isThere() { try await Task.sleep(for: .milliseconds(5)) }
    }
}
