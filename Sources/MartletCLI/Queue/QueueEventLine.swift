import Martlet

/// An event of a queue as a line of text or JSON; see ``help``.
struct QueueEventLine {
    static let help = """


        EVENTS, on standard output, one per line: the event, the request's number, method, URL and [tag], and details
        after a colon. With --json each line is an object with "event". All but "setAside", "leftAlone", "drained" and
        "ended" have "id", "tag" (null: none), "method", "url", "lane" and "key" (the Idempotency-Key; null: none):
          attempt    number: attempts in all runs
          delivered  status, headers, body
          postponed  reason: unreachable, refused, unauthorized, credentialsFailed or storage; delay in seconds; message
          dead       reason: refused, bodyChanged, bodyDamaged, expired or unsendable; message; status (null: no
                     response), headers, body: the stored part
          uncertain  as dead; reason: noResponse or interrupted
          expired    the request is now a dead letter
          fileFailed code, message: a record could not be written; this is retried
          setAside   path, reason: an invalid record was moved there
          leftAlone  path, reason: a file that cannot be read was ignored
          drained    no request waits
          ended      exit, and the numbers of delivered, dead, uncertain, expired, unreadable and left requests
        In "body" each character is one byte. Secret fields of responses are omitted.

        EXIT CODES, the first that applies: 22: a request became a dead letter, uncertain or expired; 26: a record could
        not be read; 103: requests are left, including dead and uncertain ones of earlier runs; 106: another command or
        program uses the directory; 0: all were delivered; 2, 130 and 143: as those of get.
        """

    private let name: String
    private let ticket: OfflineTicket?
    /// The readable details, escaped for a terminal.
    private let details: String?
    /// Makes the details in JSON, only if they are printed.
    private let makeMembers: () -> JSONMembers

    init(_ event: OfflineEvent) {
        switch event {
        case .submitted(let ticket): self.init("submitted", ticket)
        case .attempt(let ticket, let number): self.init("attempt", ticket, "try \(number)", ["number": number])
        case .delivered(let ticket, let response):
            self.init(
                "delivered", ticket, "status \(response.statusCode)",
                Self.members(response.statusCode, response.response.headerFields, response.body))
        case .postponed(let ticket, let wait):
            self.init(
                "postponed", ticket,
                "\(wait.reason.rawValue), again in \(ProgressText.time(wait.delay)): \(wait.message)",
                ["reason": wait.reason.rawValue, "delay": wait.delay, "message": wait.message])
        case .dead(let ticket, let letter): self.init("dead", ticket, Self.words(letter), Self.members(letter))
        case .uncertain(let ticket, let letter):
            self.init("uncertain", ticket, Self.words(letter), Self.members(letter))
        case .expired(let ticket): self.init("expired", ticket)
        case .dropped(let ticket): self.init("dropped", ticket)
        case .recordQuarantined(let path, let reason):
            self.init("setAside", nil, "\(path): \(reason)", ["path": path.string, "reason": reason])
        case .recordSkipped(let path, let reason):
            self.init("leftAlone", nil, "\(path): \(reason)", ["path": path.string, "reason": reason])
        case .fileFailed(let ticket, let error):
            self.init("fileFailed", ticket, error.message, ["code": error.code.rawValue, "message": error.message])
        case .drained: self.init("drained", nil)
        }
    }

    private init(
        _ name: String, _ ticket: OfflineTicket?, _ details: String? = nil,
        _ members: @escaping @autoclosure () -> JSONMembers = [:]
    ) {
        (self.name, self.ticket) = (name, ticket)
        makeMembers = members
        self.details = details.map { TerminalText.escaped($0) }
    }

    var text: String {
        let name = name.map { $0.isUppercase ? "-\($0.lowercased())" : "\($0)" }.joined()
        guard let ticket else { return name + (details.map { " \($0)" } ?? "") }
        return "\(name) \(ticket.id) \(Self.words(ticket))" + (details.map { ": \($0)" } ?? "")
    }

    var json: String {
        let subject: JSONMembers = ticket.map { Self.members($0) } ?? [:]
        return (["event": name] + subject + makeMembers()).jsonLine
    }

    static func words(_ letter: OfflineDeadLetter) -> String {
        let status = letter.statusCode.map { "status \($0), " } ?? ""
        return "\(letter.reason.rawValue), \(status)\(letter.message)"
    }

    /// A request, escaped for a terminal.
    static func words(_ ticket: OfflineTicket) -> String {
        let tag = ticket.tag.map { " [\($0)]" } ?? ""
        return TerminalText.escaped("\(ticket.method.rawValue) \(ticket.url.redacted)\(tag)")
    }

    static func members(_ ticket: OfflineTicket) -> JSONMembers {
        [
            "id": ticket.id.number, "tag": ticket.tag, "method": ticket.method.rawValue, "url": ticket.url.redacted,
            "lane": ticket.lane, "key": ticket.idempotencyKey,
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
            "status": status, "headers": shown.map { [$0.name.rawName, $0.value] }, "body": JSONValue.latin1(body),
        ]
    }
}

/// The numbers of requests by their result in one run of a queue.
struct QueueSummary: Hashable, Sendable {
    private enum Kind: String, CaseIterable { case delivered, dead, uncertain, expired, unreadable }

    private var counts: [Kind: Int] = [:]

    private subscript(kinds: Kind...) -> Int { kinds.reduce(0) { $0 + counts[$1, default: 0] } }

    mutating func note(_ event: OfflineEvent) {
        switch event {
        case .delivered: counts[.delivered, default: 0] += 1
        case .dead: counts[.dead, default: 0] += 1
        case .uncertain: counts[.uncertain, default: 0] += 1
        case .expired: counts[.expired, default: 0] += 1
        case .recordQuarantined, .recordSkipped: counts[.unreadable, default: 0] += 1
        case .submitted, .attempt, .postponed, .dropped, .fileFailed, .drained: break
        }
    }

    /// The number of waiting requests, and of dead or uncertain ones of earlier runs. `resting` counts these of all
    /// runs.
    func left(pending: Int, resting: Int) -> Int { pending + max(0, resting - self[.dead, .uncertain, .expired]) }

    /// The exit code: requests that need a decision take precedence over requests that are left.
    func status(left: Int) -> ExitStatus {
        if self[.dead, .uncertain, .expired] > 0 { return .rejectedByStatus }
        if self[.unreadable] > 0 { return .readFailed }
        return left > 0 ? .offline : .success
    }

    func text(left: Int) -> String {
        "ended: " + Kind.allCases.map { "\(self[$0]) \($0.rawValue), " }.joined() + "\(left) left"
    }

    func json(left: Int, _ status: ExitStatus) -> String {
        let counts = JSONMembers(Kind.allCases.map { ($0.rawValue, self[$0].json) })
        return (["event": "ended", "exit": status.code] + counts + ["left": left]).jsonLine
    }
}
