/// A server that concurrent tests share: started for the first of them, ended after the last.
///
/// A separate server for each of a hundred concurrent tests would keep the machine busy with starting servers.
actor SharedServer<Server: RealServer> {
    private let start: @Sendable () async throws -> Server
    private var running: Task<Server, any Error>?
    private var userCount = 0

    /// - Parameter start: starts a server.
    init(_ start: @escaping @Sendable () async throws -> Server) {
        self.start = start
    }

    /// Runs `body` with the server.
    ///
    /// - Throws: the error of `body`, with the server's log.
    nonisolated func whileRunning<Value>(_ body: (Server) async throws -> Value) async throws -> Value {
        let server = try await enter()
        do {
            let value = try await body(server)
            await leave()
            return value
        } catch {
            let log = String(server.log.suffix(4_000))
            await leave()
            throw ServerFailure(program: "\(Server.self)", reason: "\(error)", log: log)
        }
    }

    private func enter() async throws -> Server {
        userCount += 1
        // The task is unstructured, because the test that starts the server may end before the others.
        let task = running ?? Task { [start] in try await start() }
        running = task
        do {
            return try await task.value
        } catch {
            await leave()
            throw error
        }
    }

    private func leave() async {
        userCount -= 1
        guard userCount == 0, let ended = running else { return }
        running = nil
        if let server = try? await ended.value { await server.stop() }
    }
}
