/// Concurrent requests over a number of connections, with one task per connection.
struct Load<Contender: Client>: Sendable {
    /// The work that a task repeats.
    enum Work: Sendable {
        /// A GET request whose body is collected.
        case get
        /// A GET request whose body is decoded.
        case decode
        /// A GET request whose body is streamed and discarded.
        case pass
    }

    /// The completed work of a task.
    struct Done: Sendable {
        var count = 0
        var resumed = 0
        var histogram = Histogram()
    }

    let client: Contender
    let connections: Int
    /// The executor of the tasks; `nil` for Swift's own pool.
    let executor: (any TaskExecutor)?

    /// Runs until a time has passed or enough work was done.
    /// - Parameters:
    ///   - seconds: The time during which tasks start work; each finishes the work that it has started.
    ///   - limit: The maximum amount of work of one task.
    ///   - interval: The time between two starts in a task; `nil` for no pause.
    func run(_ work: Work, seconds: Double, limit: Int = .max, interval: Duration? = nil) async throws -> Done {
        let start = ContinuousClock.now
        let end = start + .seconds(seconds)
        return try await withThrowingTaskGroup(of: Done.self) { group in
            for index in 0..<connections {
                // A preference for no executor would cost as much as one for an executor.
                if let executor {
                    group.addTask(executorPreference: executor) {
                        try await run(work, at: index, from: start, to: end, limit, interval)
                    }
                } else {
                    group.addTask { try await run(work, at: index, from: start, to: end, limit, interval) }
                }
            }
            var sum = Done()
            for try await done in group {
                sum.count += done.count
                sum.resumed += done.resumed
                sum.histogram.add(done.histogram)
            }
            return sum
        }
    }

    /// Runs the work of one task.
    private func run(
        _ work: Work, at index: Int, from start: ContinuousClock.Instant, to end: ContinuousClock.Instant,
        _ limit: Int, _ interval: Duration?
    ) async throws -> Done {
        guard let interval else { return try await rush(work, until: end, limit: limit) }
        return try await pace(from: start + interval * index / connections, to: end, interval: interval)
    }

    /// Sends requests one after the other.
    private func rush(_ work: Work, until end: ContinuousClock.Instant, limit: Int) async throws -> Done {
        var done = Done()
        while done.count < limit, ContinuousClock.now < end {
            switch work {
            case .get: if try await client.get() == UInt8(ascii: "r") { done.resumed += 1 }
            case .decode: try await client.decode()
            case .pass: _ = try await client.discard()
            }
            done.count += 1
        }
        return done
    }

    /// Sends a request at each scheduled time. The latency of a request that starts late because of a slow predecessor
    /// is counted from its scheduled time. A late timer does not count against the client.
    private func pace(
        from first: ContinuousClock.Instant, to end: ContinuousClock.Instant, interval: Duration
    ) async throws -> Done {
        var done = Done()
        var due = first
        while due < end {
            var start = due
            if ContinuousClock.now < due {
                try await Task.sleep(until: due, clock: .continuous)
                start = ContinuousClock.now
            }
            _ = try await client.get()
            done.histogram.record(ContinuousClock.now - start)
            done.count += 1
            due += interval
        }
        return done
    }
}
