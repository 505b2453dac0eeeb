public import MartletCore

/// The sinks of a tee, and the progress of each.
struct BodyTee {
    private struct Branch {
        let sink: any BodySink
        var byteCount: UInt64 = 0
        var failure: (any Error)?
        /// Whether the sink was notified of the end.
        var isEnded = false
    }

    private var branches: [Branch]
    private let policy: TeeFailurePolicy

    init(_ sinks: [any BodySink], _ policy: TeeFailurePolicy) {
        branches = sinks.map { Branch(sink: $0) }
        self.policy = policy
    }

    /// Whether any sink still accepts bytes.
    var hasSinks: Bool { !live.isEmpty }

    private var live: [Int] { branches.indices.filter { !branches[$0].isEnded } }

    /// Passes a piece to all sinks concurrently; returns when all have written it.
    mutating func write(_ piece: [UInt8]) async throws {
        for index in await succeeded(live, { try await $0.write(piece) }) {
            branches[index].byteCount += UInt64(piece.count)
        }
        try applyFailurePolicy()
    }

    /// Notifies all sinks that the body is complete.
    mutating func finish() async throws -> [TeeResult] {
        // With `stopAll`, one after the other, so that the sinks after a failed one can still be abandoned.
        let groups = policy == .stopAll ? live.map { [$0] } : [live]
        for group in groups {
            for index in await succeeded(group, { try await $0.finish() }) { branches[index].isEnded = true }
            try applyFailurePolicy()
        }
        return branches.map { branch in
            branch.failure.map { .failed($0, byteCount: branch.byteCount) } ?? .finished(byteCount: branch.byteCount)
        }
    }

    /// Notifies all unfinished sinks that the body is incomplete.
    mutating func abandon() async { for index in live { await abandon(index) } }

    private func applyFailurePolicy() throws {
        guard policy == .stopAll, let error = branches.lazy.compactMap(\.failure).first else { return }
        throw error
    }

    private mutating func abandon(_ index: Int) async {
        branches[index].isEnded = true
        await branches[index].sink.abandon()
    }

    /// Runs an operation on several sinks concurrently, and abandons the sinks for which it throws an error.
    /// - Returns: The indices of the sinks that succeeded.
    private mutating func succeeded(_ indices: [Int], _ body: @escaping @Sendable (any BodySink) async throws -> Void)
        async -> [Int]
    {
        var succeeded: [Int] = []
        for (index, error) in await BodyTee.outcomes(indices.map { ($0, branches[$0].sink) }, body) {
            if let error {
                branches[index].failure = error
                await abandon(index)
            } else {
                succeeded.append(index)
            }
        }
        return succeeded
    }

    private static func outcomes(
        _ sinks: [(Int, any BodySink)], _ body: @escaping @Sendable (any BodySink) async throws -> Void
    ) async -> [(index: Int, error: (any Error)?)] {
        @Sendable func outcome(_ index: Int, _ sink: any BodySink) async -> (index: Int, error: (any Error)?) {
            do { try await body(sink) } catch { return (index, error) }
            return (index, nil)
        }
        // A single sink needs no tasks.
        if sinks.count == 1 { return [await outcome(sinks[0].0, sinks[0].1)] }
        return await withTaskGroup { group in
            for (index, sink) in sinks { group.addTask { await outcome(index, sink) } }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.index < $1.index }
        }
    }
}

extension ResponseBody {
    /// Sends the rest of the body to several sinks concurrently, piece by piece.
    ///
    /// The slowest sink sets the pace: the next piece is read when all have written the last one, and the TCP window
    /// stops the sender until then. Only one piece of at most 256 KiB is stored.
    ///
    /// ```swift
    /// let digest = DigestSink(.sha256)
    /// let results = try await body.tee(to: [FileSink("/data/movie.mp4"), digest])
    /// ```
    ///
    /// When the body fails or the task is cancelled, all sinks that have not finished are abandoned: a ``FileSink``
    /// then leaves no file.
    /// - Parameters:
    ///   - sinks: The destinations; a sink can be used once, in one tee.
    ///   - policy: The effect of a failed sink on the others; they continue by default.
    /// - Returns: The results of the sinks, in the same order.
    /// - Throws: An ``HTTPError`` of the body; `CancellationError`; the error of a sink with
    ///   ``TeeFailurePolicy/stopAll``.
    @discardableResult public func tee(
        to sinks: [any BodySink], onFailure policy: TeeFailurePolicy = .continueWithOthers
    ) async throws -> [TeeResult] {
        var tee = BodyTee(sinks, policy)
        do {
            while tee.hasSinks, let piece = try await reader.next() {
                try await tee.write(piece)
                try Task.checkCancellation()
            }
            try Task.checkCancellation()
            // Without a sink the rest is not needed: the caller's closure returns, and the call then handles the rest.
            let results = try await tee.finish()
            // A sink that a cancellation ended must not look like one that failed by itself.
            if results.contains(where: { !$0.isFinished }) { try Task.checkCancellation() }
            return results
        } catch {
            await tee.abandon()
            throw error
        }
    }
}

/// The effect of a failed sink on the other sinks of a tee.
public enum TeeFailurePolicy: String, Hashable, Sendable {
    /// The other sinks continue; the body is read as long as one is left.
    case continueWithOthers
    /// All sinks are abandoned, and the tee throws the error of the failed sink.
    case stopAll
}

/// The result of one sink of a tee.
public enum TeeResult: Sendable {
    /// The sink wrote the whole body of this size.
    case finished(byteCount: UInt64)
    /// The sink threw an error after this many bytes.
    case failed(any Error, byteCount: UInt64)

    /// The error of the sink; `nil` if it wrote the whole body.
    public var error: (any Error)? { if case .failed(let error, _) = self { error } else { nil } }

    /// The number of bytes that the sink wrote.
    public var byteCount: UInt64 {
        switch self {
        case .finished(let count), .failed(_, let count): count
        }
    }

    /// Whether the sink wrote the whole body.
    public var isFinished: Bool { error == nil }
}
