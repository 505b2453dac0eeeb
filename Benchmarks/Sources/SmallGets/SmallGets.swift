import Glibc
import Martlet

/// Small GETs over kept connections, as many at a time as there are connections.
@main
struct SmallGets {
    /// Runs the program: `small-gets URL CONNECTIONS COUNT [--loop]`.
    static func main() async {
        var words = Array(CommandLine.arguments.dropFirst())
        let prefersLoop = words.contains("--loop")
        words.removeAll { $0 == "--loop" }
        guard words.count == 3, let url = try? HTTPURL(words[0]),
            let connections = Int(words[1]), (1...10_000).contains(connections),
            let count = Int(words[2]), count >= connections
        else {
            print("usage: small-gets URL CONNECTIONS COUNT [--loop]")
            exit(64)
        }
        let run = SmallGets(url: url, connections: connections, count: count, prefersLoop: prefersLoop)
        do {
            print(try await run.measure())
        } catch {
            print("small-gets: \(error)")
            exit(1)
        }
    }

    /// What is fetched.
    let url: HTTPURL
    /// How many connections there are, each with one request at a time.
    let connections: Int
    /// How many requests are measured.
    let count: Int
    /// Whether the requests' tasks run on the event loop's thread.
    let prefersLoop: Bool

    /// Opens the connections by a short run, then measures: requests a second, and the process's CPU time for each.
    func measure() async throws -> String {
        var configuration = SessionConfiguration.default
        configuration.pool.connectionsPerHost = connections
        configuration.pool.totalConnections = connections
        configuration.pool.idleConnectionsPerHost = connections
        configuration.pool.idleConnections = connections
        let session = HTTPSession(configuration: configuration)

        try await run(session, rounds: min(20, count / connections))
        let clock = ContinuousClock()
        let processorTime = SmallGets.processorTime
        let rounds = count / connections
        let elapsed = try await clock.measure { try await run(session, rounds: rounds) }
        let used = SmallGets.processorTime - processorTime

        let requests = Double(rounds * connections)
        let rate = Int(requests / SmallGets.seconds(elapsed))
        let microseconds = (SmallGets.seconds(used) * 10_000_000 / requests).rounded() / 10
        return "\(rate) req/s \(microseconds) us/req"
    }

    private func run(_ session: HTTPSession, rounds: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<connections {
                if prefersLoop {
                    group.addTask(executorPreference: HTTPSession.loopExecutor) {
                        try await repeatGet(session, rounds)
                    }
                } else {
                    group.addTask { try await repeatGet(session, rounds) }
                }
            }
            try await group.waitForAll()
        }
    }

    private func repeatGet(_ session: HTTPSession, _ rounds: Int) async throws {
        for _ in 0..<rounds {
            let exchange = try await session.send(.get, url)
            _ = try exchange.validated()
        }
    }

    /// What this process has used of all processors, its own code and the kernel's for it.
    private static var processorTime: Duration {
        var used = timespec()
        unsafe clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used)
        return .seconds(used.tv_sec) + .nanoseconds(used.tv_nsec)
    }

    private static func seconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) * 1e-18
    }
}
