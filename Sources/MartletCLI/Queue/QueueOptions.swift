import ArgumentParser
import Martlet

/// The options of the commands that look into a queue, and decide about what is in it.
struct QueueOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The queue's folder; $XDG_STATE_HOME/martlet/queue or ~/.local/state/martlet/queue by default.",
            valueName: "dir"))
    var queue: String?

    /// The same for the commands whose options are read as those of `get`.
    static let directory = CurlOption.value(
        "queue", nil, "DIR",
        "the queue's folder; $XDG_STATE_HOME/martlet/queue or ~/.local/state/martlet/queue by default"
    ) { $0.queue.directory = $1 }

    /// Does something with the queue, which sends nothing meanwhile, and tells what was found when it was opened.
    /// - Throws: The exit code, when what is wrong has been said.
    func open<Value: Sendable>(
        _ body: (OfflineQueue) async throws(UsageError) -> Value
    ) async throws(ExitStatus) -> Value {
        do throws(UsageError) {
            return try await QueueDirectory.withIdleQueue(
                try QueueDirectory.path(queue), global: GlobalOptions(), body)
        } catch {
            await error.tell()
            throw error.status
        }
    }
}
