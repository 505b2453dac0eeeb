import Martlet

/// Events of a queue as lines: the event, the request's number, method, URL and tag, and details after a colon.
enum QueueEventText {
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
        case .recordQuarantined(let path, let reason):
            "set-aside \(TerminalText.escaped("\(path): \(reason)"))"
        case .recordSkipped(let path, let reason): "left-alone \(TerminalText.escaped("\(path): \(reason)"))"
        case .fileFailed(let ticket, let error): line("file-failed", ticket, error.message)
        case .drained: "drained"
        }
    }

    /// The reason that a request is not sent again.
    static func words(_ letter: OfflineDeadLetter) -> String {
        let status = letter.statusCode.map { "status \($0), " } ?? ""
        return "\(letter.reason.rawValue), \(status)\(letter.message)"
    }

    /// A request, escaped for a terminal.
    static func words(_ ticket: OfflineTicket) -> String {
        let tag = ticket.tag.map { " [\($0)]" } ?? ""
        return TerminalText.escaped("\(ticket.method.rawValue) \(ticket.url.redacted)\(tag)")
    }

    private static func line(_ name: String, _ ticket: OfflineTicket, _ rest: String? = nil) -> String {
        "\(name) \(ticket.id) \(words(ticket))" + (rest.map { ": \(TerminalText.escaped($0))" } ?? "")
    }
}

/// Events of a queue as JSON objects, one a line.
enum QueueEventJSON {
    /// The contents of the lines, for the help.
    static let help = """


        EVENTS, on standard output, a line each: what happened, the request's number, method, URL and [tag], and behind a
        colon more of it. With --json a line is an object. Each has "event". All but "setAside", "leftAlone", "drained" and
        "ended" have "id", "tag" (null: none), "method", "url", "lane" and "key" (the Idempotency-Key; null: none):
          attempt    number: which try it is, over all runs
          delivered  status, headers, body
          postponed  reason: unreachable, refused, unauthorized, credentialsFailed or storage; delay in seconds; message
          dead       reason: refused, bodyChanged, bodyDamaged, expired or unsendable; message; status (null: no answer), headers,
                     body: as much of it as was kept
          uncertain  the same; reason: unanswered or interrupted
          expired    its time is up; it stays as a dead letter
          fileFailed code, message: something could not be written down, and is tried again
          setAside   path, reason: what is no record that can be read lies here now
          leftAlone  path, reason: what cannot be read was left where it is
          drained    nothing waits any more
          ended      exit, delivered, dead, uncertain, expired, unreadable, left: how many
        In "body" a character is a byte. Fields of answers that are secret are left out.

        EXIT CODES: 0: all was delivered; 22: a request became a dead letter, uncertain or too old; 26: a record could not
        be read; 103: requests are left, dead and uncertain ones of earlier runs included; 106: another command or program has the folder; 2 and
        130: as those of get. Of several the first counts.
        """

    static func line(_ event: OfflineEvent) -> String {
        switch event {
        case .submitted(let ticket): line("submitted", ticket)
        case .attempt(let ticket, let number): line("attempt", ticket, ["number": number])
        case .delivered(let ticket, let answer):
            line("delivered", ticket, members(answer.statusCode, answer.response.headerFields, answer.body))
        case .postponed(let ticket, let wait):
            line(
                "postponed", ticket,
                ["reason": wait.reason.rawValue, "delay": wait.delay, "message": wait.message])
        case .dead(let ticket, let letter): line("dead", ticket, members(letter))
        case .uncertain(let ticket, let letter): line("uncertain", ticket, members(letter))
        case .expired(let ticket): line("expired", ticket)
        case .dropped(let ticket): line("dropped", ticket)
        case .recordQuarantined(let path, let reason): line("setAside", path.string, reason)
        case .recordSkipped(let path, let reason): line("leftAlone", path.string, reason)
        case .fileFailed(let ticket, let error):
            line("fileFailed", ticket, ["code": error.code.rawValue, "message": error.message])
        case .drained: (["event": "drained"] as JSONMembers).jsonLine
        }
    }

    static func members(_ ticket: OfflineTicket) -> JSONMembers {
        [
            "id": ticket.id.number, "tag": ticket.tag, "method": ticket.method.rawValue,
            "url": ticket.url.redacted, "lane": ticket.lane, "key": ticket.idempotencyKey,
        ]
    }

    /// The reason that a request is not sent again, and the response.
    static func members(_ letter: OfflineDeadLetter) -> JSONMembers {
        ["reason": letter.reason.rawValue, "message": letter.message]
            + members(letter.statusCode, letter.fields, letter.body)
    }

    private static func members(_ status: Int?, _ fields: HTTPFields, _ body: [UInt8]) -> JSONMembers {
        let shown = fields.filter { !HeadText.isSecret($0.name.canonicalName) }
        return [
            "status": status, "headers": shown.map { [$0.name.rawName, $0.value] },
            "body": JSONValue.latin1(body),
        ]
    }

    private static func line(_ event: String, _ ticket: OfflineTicket, _ rest: JSONMembers = [:]) -> String {
        (["event": event] + members(ticket) + rest).jsonLine
    }

    private static func line(_ event: String, _ path: String, _ reason: String) -> String {
        (["event": event, "path": path, "reason": reason] as JSONMembers).jsonLine
    }
}

/// The results of the requests of a queue in one run.
struct QueueSummary: Hashable, Sendable {
    private var delivered = 0
    private var dead = 0
    private var uncertain = 0
    private var expired = 0
    /// The number of files that could not be read.
    private var unreadable = 0

    mutating func note(_ event: OfflineEvent) {
        switch event {
        case .delivered: delivered += 1
        case .dead: dead += 1
        case .uncertain: uncertain += 1
        case .expired: expired += 1
        case .recordQuarantined, .recordSkipped: unreadable += 1
        case .submitted, .attempt, .postponed, .dropped, .fileFailed, .drained: break
        }
    }

    /// The number of requests that are left in the queue, besides those counted here that became dead or uncertain.
    /// - Parameters:
    ///   - pending: The number of requests that wait.
    ///   - resting: The number of dead and uncertain requests in the queue, those of earlier runs included.
    func left(pending: Int, resting: Int) -> Int { pending + max(0, resting - dead - uncertain - expired) }

    /// The exit code: requests that need a decision come before requests that need time.
    /// - Parameter left: The number of requests that are left, see ``left(pending:resting:)``.
    func status(left: Int) -> ExitStatus {
        if dead + uncertain + expired > 0 { return .refusedByStatus }
        if unreadable > 0 { return .readFailed }
        return left > 0 ? .offline : .success
    }

    /// The last line, for people.
    func text(left: Int) -> String {
        "ended: \(delivered) delivered, \(dead) dead, \(uncertain) uncertain, \(expired) expired, \(unreadable) unreadable, "
            + "\(left) left"
    }

    /// The last line, for programs.
    func json(left: Int, _ status: ExitStatus) -> String {
        let members: JSONMembers = [
            "event": "ended", "exit": status.code, "delivered": delivered, "dead": dead,
            "uncertain": uncertain, "expired": expired, "unreadable": unreadable, "left": left,
        ]
        return members.jsonLine
    }
}
