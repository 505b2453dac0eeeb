public import MartletClient

extension HTTPSession {
    /// Sends a request; where that cannot be done now, a queue keeps it and sends it later.
    ///
    /// It is written to the queue's directory before it is sent, so that a process that ends in between does not lose it. It
    /// waits for its turn in its lane; if the lane waits, since what came before could not be sent, it is frozen at once.
    ///
    /// - Parameter options: How the first try is made; later ones are made as the queue's options say. Retries are the
    ///   queue's.
    /// - Returns: The answer, whatever its status, and the queue keeps nothing; or a ticket, where no connection could be
    ///   opened, or the answer was one after which a queue tries again (``OfflineQueue``): its events tell the rest.
    /// - Throws: As ``OfflineQueue/submit(_:body:as:)``; an ``MartletClient/HTTPError`` where the request may or may not have
    ///   taken effect and must not be sent again: the queue keeps nothing of it then. `CancellationError` when the task is
    ///   cancelled: the queue keeps nothing of it, and it may have been sent.
    public nonisolated func send(
        _ request: HTTPRequest, body: HTTPBody = .none, options: RequestOptions = RequestOptions(),
        whenOffline fallback: OfflineFallback
    ) async throws -> OfflineOutcome {
        guard let queue = fallback.queue ?? companion(as: OfflineQueue.self) else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "no offline queue is open for this session, to freeze the request in")
        }
        return try await queue.send(request, body: body, options: options, as: fallback.submission)
    }
}
