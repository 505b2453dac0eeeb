import ArgumentParser
import FoundationEssentials
import Martlet

/// `martlet queue list`: a line for each request.
struct QueueListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each request, those first that were added first.",
        discussion: """
            A line: number, state (waiting, dead or uncertain), tries, when it expires, size of the body, method, URL and \
            [tag]; the lane where it is not that of the origin, the fields that are not stored, and why it is not sent again \
            by itself. With --json a line is an object. A folder that is not there is an empty queue, and is not made.
            """)

    @ArgumentParser.OptionGroup var options: QueueOptions

    @Flag(help: "Print JSON.")
    var json = false

    mutating func run() async throws {
        if let path = try? QueueDirectory.path(options.queue),
            !FileManager.default.fileExists(atPath: path.string)
        {
            return
        }
        let entries = try await options.open { queue in await queue.entries }
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        for entry in entries {
            let line = QueueEntryLine(entry, now: now)
            try await Console.print((json ? JSONWriter.text(line.json) : line.text) + "\n")
        }
    }
}
