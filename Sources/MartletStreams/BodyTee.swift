public import MartletCore

/// The sinks of a tee, and how far each is.
struct BodyTee {
    private let sinks: [any BodySink]
    private let policy: TeeFailurePolicy
    private var counts: [UInt64]
    private var failures: [(any Error)?]
    /// Of which the end has been told, one way or the other.
    private var isEnded: [Bool]

    init(_ sinks: [any BodySink], _ policy: TeeFailurePolicy) {
        self.sinks = sinks
        self.policy = policy
        counts = Array(repeating: 0, count: sinks.count)
        failures = Array(repeating: nil, count: sinks.count)
        isEnded = Array(repeating: false, count: sinks.count)
    }

    /// Whether anybody takes bytes.
    var hasSinks: Bool { isEnded.contains(false) }

    private var live: [Int] { sinks.indices.filter { !isEnded[$0] } }

    /// Gives a piece to all at once; returns when all have taken it.
    mutating func write(_ piece: [UInt8]) async throws {
        let live = live
        let outcomes = await BodyTee.all(live.map { (index: $0, sink: sinks[$0]) }) { sink in
            try await sink.write(piece)
        }
        for (index, error) in outcomes {
            if let error { await fail(index, error) } else { counts[index] += UInt64(piece.count) }
        }
        try heedPolicy()
    }

    /// Tells all that the body is complete.
    mutating func finish() async throws -> [TeeResult] {
        switch policy {
        case .continueWithOthers:
            let live = live
            let outcomes = await BodyTee.all(live.map { (index: $0, sink: sinks[$0]) }) { sink in
                try await sink.finish()
            }
            for (index, error) in outcomes {
                if let error { await fail(index, error) } else { isEnded[index] = true }
            }
        case .stopAll:
            // One after the other, so that those behind one that fails can still be abandoned.
            for index in live {
                do {
                    try await sinks[index].finish()
                    isEnded[index] = true
                } catch {
                    await fail(index, error)
                    throw error
                }
            }
        }
        return sinks.indices.map { index in
            if let error = failures[index] { return .failed(error, byteCount: counts[index]) }
            return .finished(byteCount: counts[index])
        }
    }

    /// Tells all that have not ended that the body will not be complete.
    mutating func abandon() async {
        for index in live {
            isEnded[index] = true
            await sinks[index].abandon()
        }
    }

    private mutating func fail(_ index: Int, _ error: any Error) async {
        failures[index] = error
        isEnded[index] = true
        await sinks[index].abandon()
    }

    private func heedPolicy() throws {
        guard policy == .stopAll, let error = failures.compactMap(\.self).first else { return }
        throw error
    }

    /// Does something with several sinks at once.
    /// - Returns: What each threw, by its number.
    private static func all(
        _ sinks: [(index: Int, sink: any BodySink)],
        _ body: @escaping @Sendable (any BodySink) async throws -> Void
    ) async -> [(index: Int, error: (any Error)?)] {
        // One sink needs no tasks.
        if sinks.count == 1, let only = sinks.first {
            do {
                try await body(only.sink)
                return [(only.index, nil)]
            } catch {
                return [(only.index, error)]
            }
        }
        return await withTaskGroup(of: (index: Int, error: (any Error)?).self) { group in
            for (index, sink) in sinks {
                group.addTask {
                    do {
                        try await body(sink)
                        return (index, nil)
                    } catch {
                        return (index, error)
                    }
                }
            }
            var outcomes: [(index: Int, error: (any Error)?)] = []
            for await outcome in group { outcomes.append(outcome) }
            return outcomes.sorted { $0.index < $1.index }
        }
    }
}

extension ResponseBody {
    /// Sends what is left of the body to several sinks at once, piece by piece.
    ///
    /// The slowest sets the pace: the next piece is read when all have taken the last one, and meanwhile the sender is held by
    /// the TCP window. One piece, of at most 256 KiB, is held for all of them.
    ///
    /// ```swift
    /// let digest = DigestSink(.sha256)
    /// let results = try await body.tee(to: [FileSink("/data/movie.mp4"), digest])
    /// ```
    ///
    /// When the body fails or the task is cancelled, all sinks are abandoned: a ``FileSink`` then leaves no file.
    /// - Parameters:
    ///   - sinks: Where to; a sink stands in one tee, once.
    ///   - policy: What becomes of the others when one fails; they go on by default.
    /// - Returns: How each sink ended, in their order.
    /// - Throws: An ``HTTPError`` of the body; `CancellationError`; with ``TeeFailurePolicy/stopAll``, what a sink threw.
    @discardableResult
    public func tee(
        to sinks: [any BodySink], onFailure policy: TeeFailurePolicy = .continueWithOthers
    ) async throws -> [TeeResult] {
        var tee = BodyTee(sinks, policy)
        do {
            while tee.hasSinks, let piece = try await reader.next() {
                try await tee.write(piece)
                try Task.checkCancellation()
            }
            try Task.checkCancellation()
            // Without a sink the rest is of no use to anybody: the caller's closure returns, and what is left is judged then.
            return try await tee.finish()
        } catch {
            await tee.abandon()
            throw error
        }
    }
}

/// What becomes of the other sinks of a tee when one fails.
public enum TeeFailurePolicy: String, Hashable, Sendable {
    /// They go on; the body is read for as long as one is left.
    case continueWithOthers
    /// All are abandoned, and the tee throws what the one threw.
    case stopAll
}

/// How one sink of a tee ended.
public enum TeeResult: Sendable {
    /// It took the whole body: so many bytes.
    case finished(byteCount: UInt64)
    /// It threw, after it had taken so many bytes.
    case failed(any Error, byteCount: UInt64)

    /// What it threw; `nil` where it took all.
    public var error: (any Error)? {
        switch self {
        case .finished: nil
        case .failed(let error, _): error
        }
    }

    /// How many bytes it took.
    public var byteCount: UInt64 {
        switch self {
        case .finished(let count), .failed(_, let count): count
        }
    }

    /// Whether it took the whole body.
    public var isFinished: Bool { error == nil }
}
