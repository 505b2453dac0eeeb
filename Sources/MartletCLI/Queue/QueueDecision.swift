import ArgumentParser
import Martlet

/// The requests that a command decides about, one after the other.
struct QueueDecision: ParsableArguments {
    @ArgumentParser.OptionGroup var options: QueueOptions

    @Argument(help: ArgumentHelp("The numbers of the requests, as “queue list” shows them.", valueName: "id"))
    var ids: [UInt64]

    /// Does something with each request.
    /// - Throws: The exit code of the first that it could not be done with; it is done with the others all the same.
    func forEach(
        _ body: @Sendable (OfflineQueue, OfflineID) async throws -> Void
    ) async throws(ExitStatus) {
        let ids = ids
        let failures = try await options.open { queue in
            var failures: [UsageError] = []
            for id in ids {
                do {
                    try await body(queue, OfflineID(id))
                } catch {
                    failures.append(UsageError(ofQueue: error))
                }
            }
            return failures
        }
        for failure in failures { await failure.tell() }
        if let failure = failures.first { throw failure.status }
    }
}
