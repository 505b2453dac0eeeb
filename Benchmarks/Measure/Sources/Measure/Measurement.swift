import CMalloc

/// A runner of the scenario of a command line, which prints the outcome as one line of JSON.
public struct Measurement<Contender: Client>: Sendable {
    let arguments: Arguments
    let client: Contender
    let executor: (any TaskExecutor)?

    /// - Parameter executor: The executor of the tasks; `nil` for Swift's own pool.
    public init(_ arguments: Arguments, of client: Contender, on executor: (any TaskExecutor)? = nil) {
        self.arguments = arguments
        self.client = client
        self.executor = executor
    }

    /// Runs the scenario and prints its outcome.
    public func run() async throws {
        switch arguments.scenario {
        case "get": try await requests(.get)
        case "decode": try await requests(.decode)
        case "pass": try await requests(.pass)
        case "pace": try await pace()
        case "discard": try await transfers { try await client.discard() }
        case "save":
            let path = try required("file")
            try await transfers {
                try await client.save(to: path)
                return 0
            }
        case "upload":
            let path = try required("file")
            try await transfers {
                try await client.upload(from: path)
                return 0
            }
        case "idle": try await idle()
        default: throw UnsupportedScenario()
        }
    }

    private func required(_ name: String) throws -> String {
        guard let value = arguments[name] else { throw Arguments.Mistake(text: "\(name)= is missing") }
        return value
    }

    private func load(_ connections: Int) -> Load<Contender> {
        Load(client: client, connections: connections, executor: executor)
    }

    /// Runs `connections=` concurrent requests for `seconds=` or up to `count=`, after `warm=` seconds that are not
    /// counted.
    private func requests(_ work: Load<Contender>.Work) async throws {
        let load = load(arguments.number("connections", 1))
        let count = arguments.number("count", 0)
        var outcome = Outcome()
        if let warm = arguments.seconds("warm") {
            outcome.total = try await load.run(work, seconds: warm).count
        }
        try await measure(&outcome) { outcome in
            let done =
                if count > 0 {
                    try await load.run(work, seconds: 600, limit: count / load.connections)
                } else {
                    try await load.run(work, seconds: arguments.seconds("seconds") ?? 1)
                }
            outcome.count = done.count
            outcome.resumed = done.resumed
        }
    }

    /// Runs requests at a fixed `rate=` per second, and measures each.
    private func pace() async throws {
        let load = load(arguments.number("connections", 1))
        var outcome = Outcome()
        outcome.total = try await load.run(.get, seconds: 0.2).count
        let interval = Duration.seconds(
            Double(load.connections) / Double(max(1, arguments.number("rate", 1000))))
        try await measure(&outcome) { outcome in
            let done = try await load.run(
                .get, seconds: arguments.seconds("seconds") ?? 1, interval: interval)
            outcome.count = done.count
            outcome.histogram = done.histogram
        }
    }

    /// Transfers a whole file `count=` times, one after the other.
    private func transfers(_ transfer: () async throws -> Int) async throws {
        var outcome = Outcome()
        let count = arguments.number("count", 1)
        try await measure(&outcome) { outcome in
            for _ in 0..<count {
                outcome.byteCount += try await transfer()
                outcome.count += 1
            }
        }
    }

    /// Opens `connections=` concurrently, `each=` times (once by default), and leaves them idle. At each step it prints
    /// a line and waits for one, so that the parent process can inspect this process.
    private func idle() async throws {
        _ = try await client.get()
        Console.pause("ready")
        let connections = arguments.number("connections", 1)
        let done = try await load(connections).run(.get, seconds: 600, limit: arguments.number("each", 1))
        Console.pause("open \(done.count)")
        // Returns free memory that malloc retains to the system.
        malloc_trim(0)
        Console.pause("trimmed")
    }

    private func measure(_ outcome: inout Outcome, _ body: (inout Outcome) async throws -> Void) async throws {
        let start = ContinuousClock.now
        let used = ProcessorTime.seconds
        try await body(&outcome)
        outcome.processorSeconds = ProcessorTime.seconds - used
        outcome.seconds = (ContinuousClock.now - start) / .seconds(1)
        outcome.total += outcome.count
        print(outcome.json)
    }
}
