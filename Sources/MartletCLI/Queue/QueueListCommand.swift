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

    @OptionGroup var options: QueueOptions

    @Flag(help: "Print JSON.") var json = false

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
            try await Console.print((json ? line.members.jsonLine : line.text) + "\n")
        }
    }
}

/// A request of a queue as one line.
struct QueueEntryLine {
    private let entry: OfflineEntry
    /// Milliseconds since 1970.
    private let now: Int64

    init(_ entry: OfflineEntry, now: Int64) {
        self.entry = entry
        self.now = now
    }

    /// For people: number, state, attempts, expiry, size of the body, and the request last.
    var text: String {
        let columns = [
            ("\(entry.ticket.id)", 4), (state, 9),
            ("\(entry.attempts) \(entry.attempts == 1 ? "try" : "tries")", 8), (expiry, 21),
            (ProgressText.size(Double(entry.bodyByteCount)), 10),
        ]
        var parts = columns.map { ColumnText.fitted($0, to: max($1, ColumnText.width($0))) }
        parts.append(QueueEventText.words(entry.ticket))
        if entry.ticket.lane != entry.ticket.url.origin.description {
            parts.append("lane \(TerminalText.escaped(entry.ticket.lane))")
        }
        if !entry.secretFields.isEmpty {
            parts.append("not stored: \(TerminalText.escaped(entry.secretFields.joined(separator: ", ")))")
        }
        if let letter { parts.append(TerminalText.escaped(QueueEventText.words(letter))) }
        return parts.joined(separator: "  ")
    }

    var members: JSONMembers {
        QueueEventJSON.members(entry.ticket) + [
            "state": state, "attempts": entry.attempts, "submitted_ms": entry.submittedAt,
            "expires_ms": entry.expiresAt, "bytes": entry.bodyByteCount, "secret_fields": entry.secretFields,
            "letter": letter.map { QueueEventJSON.members($0) },
        ]
    }

    private var state: String { described.state }
    private var letter: OfflineDeadLetter? { described.letter }

    private var described: (state: String, letter: OfflineDeadLetter?) {
        switch entry.state {
        case .waiting, .sending: ("waiting", nil)
        case .dead(let letter): ("dead", letter)
        case .uncertain(let letter): ("uncertain", letter)
        }
    }

    private var expiry: String {
        guard entry.isWaiting else { return "-" }
        let (difference, overflows) = entry.expiresAt.subtractingReportingOverflow(now)
        let left = overflows ? .max : difference
        guard left > 0 else { return "expired" }
        let days = left / 86_400_000
        return days > 1 ? "expires in \(days) d" : "expires in \(ProgressText.time(.milliseconds(left)))"
    }
}

extension OfflineEntry {
    /// Whether the queue sends the request without a command.
    var isWaiting: Bool {
        switch state {
        case .waiting, .sending: true
        case .dead, .uncertain: false
        }
    }
}
