import Martlet

/// Events of a queue as lines: what happened, the request's number, method, URL and tag, and behind a colon more of it.
enum QueueEventText {
    /// A line, without its end.
    static func line(_ event: OfflineEvent) -> String {
        switch event {
        case .submitted(let ticket): line("submitted", ticket)
        case .attempt(let ticket, let number): line("attempt", ticket, "try \(number)")
        case .delivered(let ticket, let answer): line("delivered", ticket, "status \(answer.statusCode)")
        case .postponed(let ticket, let wait):
            line(
                "postponed", ticket,
                "\(wait.reason.rawValue), again in \(ProgressText.time(wait.delay)): \(wait.message)")
        case .dead(let ticket, let letter): line("dead", ticket, words(letter))
        case .uncertain(let ticket, let letter): line("uncertain", ticket, words(letter))
        case .expired(let ticket): line("expired", ticket)
        case .dropped(let ticket): line("dropped", ticket)
        case .setAside(let path, let reason): "set-aside \(TerminalText.escaped("\(path): \(reason)"))"
        case .leftAlone(let path, let reason): "left-alone \(TerminalText.escaped("\(path): \(reason)"))"
        case .fileFailed(let ticket, let error): line("file-failed", ticket, error.message)
        case .drained: "drained"
        }
    }

    /// Why a request is not sent again.
    static func words(_ letter: OfflineDeadLetter) -> String {
        let status = letter.statusCode.map { "status \($0), " } ?? ""
        return "\(letter.reason.rawValue), \(status)\(letter.message)"
    }

    /// A request, without what could command a terminal.
    static func words(_ ticket: OfflineTicket) -> String {
        let tag = ticket.tag.map { " [\($0)]" } ?? ""
        return TerminalText.escaped("\(ticket.method.rawValue) \(ticket.url.redacted)\(tag)")
    }

    private static func line(_ name: String, _ ticket: OfflineTicket, _ rest: String? = nil) -> String {
        "\(name) \(ticket.id) \(words(ticket))" + (rest.map { ": \(TerminalText.escaped($0))" } ?? "")
    }
}
