/// Requests over as many connections at a time as asked for, each connection with a task of its own.
struct Load<Contender: Client>: Sendable {
    /// What a task does again and again.
    enum Work: Sendable {
        /// GET, body collected.
        case get
        /// GET, body decoded.
        case decode
        /// GET, body passed by piece by piece.
        case pass
    }

    /// What a task has done.
    struct Done: Sendable {
        var count = 0
        var resumed = 0
        var histogram = Histogram()
    }

    let client: Contender
    let connections: Int
    /// Where the tasks run; `nil` for Swift's own pool.
    let executor: (any TaskExecutor)?

    /// Runs until a time has passed, or until there is enough.
    /// - Parameters:
    ///   - seconds: How long tasks go on starting; each finishes what it has begun.
    ///   - limit: The most that one task does.
    ///   - interval: The time from one start to the next in a task; `nil` for none between.
    func run(_ work: Work, seconds: Double, limit: Int = .max, interval: Duration? = nil) async throws -> Done {
        let start = ContinuousClock.now
        let end = start + .seconds(seconds)
        return try await withThrowingTaskGroup(of: Done.self) { group in
            for index in 0..<connections {
                // A preference for no executor would cost as much as one for some.
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

    /// What one task does.
    private func run(
        _ work: Work, at index: Int, from start: ContinuousClock.Instant, to end: ContinuousClock.Instant,
        _ limit: Int, _ interval: Duration?
    ) async throws -> Done {
        guard let interval else { return try await rush(work, until: end, limit: limit) }
        return try await pace(from: start + interval * index / connections, to: end, interval: interval)
    }

    /// One request after the other.
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

    /// A request at each of the times due. One that starts late because the one before it was slow is counted from when
    /// it was due; that a timer rings late is not held against the client.
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
