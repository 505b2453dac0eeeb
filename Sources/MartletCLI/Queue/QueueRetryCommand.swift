import ArgumentParser
import Martlet

/// `martlet queue retry`: lets dead and uncertain requests be sent again.
struct QueueRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Let dead or uncertain requests be sent again, by the next run, in their old places.",
        discussion:
            "An uncertain request may have taken effect: it is for you to know that it has not, or may again."
    )

    @ArgumentParser.OptionGroup var decision: QueueDecision

    mutating func run() async throws {
        try await decision.forEach { queue, id in try await queue.retry(id) }
    }
}
