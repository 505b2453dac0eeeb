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
