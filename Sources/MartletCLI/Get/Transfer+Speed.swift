import Martlet

extension Transfer {
    /// Runs a try, and ends it where it is too slow.
    func watchingSpeed(
        of control: TransferControl, _ ledger: TransferLedger,
        _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        guard let watch = SpeedWatch(options) else { return try await body() }
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await body() }
            tasks.addTask {
                while true {
                    try await Task.sleep(for: watch.interval)
                    let bytes = control.downloadedByteCount + control.uploadedByteCount
                    if ledger.isTooSlow(bytes, at: .now) {
                        throw Verdict(status: .timedOut, message: watch.message)
                    }
                }
            }
            defer { tasks.cancelAll() }
            // Whichever ends first: only the try can end well.
            try await tasks.next()
        }
    }
}
