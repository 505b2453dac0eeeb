import ArgumentParser
import Martlet

/// `martlet queue drop`: takes requests out.
struct QueueDropCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Take requests out of the queue, whatever becomes of them.")

    @ArgumentParser.OptionGroup var decision: QueueDecision

    mutating func run() async throws {
        try await decision.forEach { queue, id in try await queue.drop(id) }
    }
}
