/// A server that concurrent tests share: a test that stores a file on it chooses a unique name.
protocol CommonServer: RealServer {
    static var shared: SharedServer<Self> { get }
}

extension CommonServer {
    /// Runs `body` with the server. Other tests may use it at the same time, so `body` leaves it running.
    static func withServer<Value>(_ body: (Self) async throws -> Value) async throws -> Value {
        try await shared.whileRunning(body)
    }
}
