/// A server that tests which run at the same time have in common: whoever stores something with it chooses a name that nobody
/// else has.
protocol CommonServer: RealServer {
    static var shared: SharedServer<Self> { get }
}

extension CommonServer {
    /// Runs `body` with the server. Other tests may use it at the same time, so `body` leaves it running.
    static func withServer<Value>(_ body: (Self) async throws -> Value) async throws -> Value {
        try await shared.whileRunning(body)
    }
}
