import MartletURL
import HTTPTypes
import Martlet
import SystemPackage
import Testing

@testable import MartletCLI
@testable import MartletOffline

@Suite("Text lines of queue events and entries")
struct QueueLineTests {
    private func ticket(
        tag: String? = "note-1", lane: String = "http://h", key: String? = "\"k\""
    ) throws -> OfflineTicket {
        var request = QueuedRequest(
            id: OfflineID(7), lane: lane, method: "POST", url: try HTTPURL("http://h/p"), submitted: 0,
            expires: 1)
        request.tag = tag
        request.idempotencyKey = key
        return OfflineTicket(request)
    }

    private func letter(_ reason: OfflineDeadLetter.Reason, status: Int? = nil) -> OfflineDeadLetter {
        OfflineDeadLetter(
            reason, message: "it did not go", statusCode: status,
            fields: [.contentType: "text/plain", .setCookie: "secret=1"], body: [0x41, 0xFF])
    }

    @Test("A line names the event and the request, with details after a colon")
    func texts() throws {
        let ticket = try ticket()
        let wait = OfflinePostponement(
            reason: .unreachable, delay: .milliseconds(2500), message: "nobody there")
        let events: [(OfflineEvent, String)] = [
            (.submitted(ticket), "submitted 7 POST http://h/p [note-1]"),
            (.attempt(ticket, number: 2), "attempt 7 POST http://h/p [note-1]: try 2"),
            (
                .postponed(ticket, wait),
                "postponed 7 POST http://h/p [note-1]: unreachable, again in 2.5 s: nobody there"
            ),
            (
                .dead(ticket, letter(.refused, status: 422)),
                "dead 7 POST http://h/p [note-1]: refused, status 422, it did not go"
            ),
            (
                .uncertain(ticket, letter(.interrupted)),
                "uncertain 7 POST http://h/p [note-1]: interrupted, it did not go"
            ),
            (.expired(ticket), "expired 7 POST http://h/p [note-1]"),
            (.dropped(ticket), "dropped 7 POST http://h/p [note-1]"),
            (
                .recordQuarantined(path: "/q/corrupt/3.request", reason: "bad"),
                "set-aside /q/corrupt/3.request: bad"
            ),
            (.recordSkipped(path: "/q/3.request", reason: "bad"), "left-alone /q/3.request: bad"),
            (.drained, "drained"),
        ]
        for (event, line) in events { #expect(QueueEventLine(event).text == line) }
    }

    @Test("Control characters and line breaks are escaped")
    func escaped() throws {
        let hostile = try ticket(tag: "a\n\u{1B}[2J")
        let text = QueueEventLine(.submitted(hostile)).text
        #expect(text == "submitted 7 POST http://h/p [a\\u{a}\\u{1b}[2J]")
        let wait = OfflinePostponement(reason: .refused, delay: .zero, message: "x\ry")
        #expect(QueueEventLine(.postponed(hostile, wait)).text.hasSuffix(": x\\u{d}y"))
        #expect(!QueueEventLine(.submitted(hostile)).json.contains("\u{1B}"))
    }

    @Test(
        "A JSON object has the request's identity and result, without secret fields"
    )
    func objects() throws {
        let ticket = try ticket(tag: nil)
        let wait = OfflinePostponement(reason: .unauthorized, delay: .milliseconds(2500), message: "m")
        #expect(
            QueueEventLine(.postponed(ticket, wait)).json
                == #"{"event":"postponed","id":7,"tag":null,"method":"POST","url":"http://h/p","lane":"http://h","#
                + #""key":"\"k\"","reason":"unauthorized","delay":2.500000,"message":"m"}"#)
        #expect(
            QueueEventLine(.dead(ticket, letter(.refused, status: 422))).json.hasSuffix(
                #""reason":"refused","message":"it did not go","status":422,"#
                    + #""headers":[["Content-Type","text/plain"]],"body":"Aÿ"}"#))
        #expect(
            QueueEventLine(.uncertain(ticket, letter(.noResponse))).json.contains(#""status":null"#))
        #expect(QueueEventLine(.drained).json == #"{"event":"drained"}"#)
        #expect(
            QueueEventLine(.recordQuarantined(path: "/q", reason: "r")).json
                == #"{"event":"setAside","path":"/q","reason":"r"}"#)
    }

    private func entry(_ state: OfflineEntry.State, lane: String? = nil, secrets: [String] = []) throws
        -> OfflineEntry
    {
        OfflineEntry(
            ticket: try ticket(lane: lane ?? HTTPURL("http://h/").origin.description), state: state,
            attempts: 1, submittedAt: 1000, expiresAt: 3_601_000,
            bodyByteCount: 12, secretFields: secrets)
    }

    @Test("An entry is one line of columns, with the request last")
    func entries() throws {
        let waiting = QueueEntryLine(try entry(.waiting, secrets: ["Cookie"]), now: 1000)
        #expect(
            waiting.text
                == "7     waiting    1 try     expires in 1 h 0 min   12 B        POST http://h/p [note-1]  not stored: Cookie"
        )
        let dead = QueueEntryLine(try entry(.dead(letter(.refused, status: 404)), lane: "mine"), now: 1000)
        #expect(
            dead.text
                == "7     dead       1 try     -                      12 B        POST http://h/p [note-1]  lane mine  "
                + "refused, status 404, it did not go")
        let late = QueueEntryLine(try entry(.waiting), now: 9_000_000)
        #expect(late.text.contains("  expired  "))
        let clockSetBack = QueueEntryLine(try entry(.waiting), now: .min)
        #expect(clockSetBack.text.contains("expires in "))
        #expect(
            dead.members.jsonLine.contains(
                #""state":"dead","attempts":1,"submitted_ms":1000,"expires_ms":3601000,"bytes":12,"secret_fields":[],"#
                    + #""letter":{"reason":"refused""#))
    }

    @Test("Dead and uncertain requests of earlier runs remain and set the exit status")
    func earlier() throws {
        let ticket = try ticket()
        var summary = QueueSummary()
        #expect(summary.left(pending: 0, resting: 0) == 0)
        #expect(summary.status(left: summary.left(pending: 0, resting: 2)) == .offline)
        summary.note(.dead(ticket, letter(.refused)))
        summary.note(.expired(ticket))
        #expect(summary.left(pending: 1, resting: 2) == 1)
        #expect(summary.left(pending: 1, resting: 5) == 4)
    }

    @Test("An exit status that needs the user wins over one that needs time")
    func statuses() throws {
        let ticket = try ticket()
        var summary = QueueSummary()
        #expect(summary.status(left: 0) == .success)
        #expect(summary.status(left: 2) == .offline)
        summary.note(.recordQuarantined(path: "/q", reason: "r"))
        #expect(summary.status(left: 2) == .readFailed)
        for event in [
            OfflineEvent.dead(ticket, letter(.refused)), .uncertain(ticket, letter(.noResponse)),
            .expired(ticket),
        ] {
            var summary = summary
            summary.note(event)
            #expect(summary.status(left: 2) == .rejectedByStatus)
        }
        #expect(
            summary.text(left: 2) == "ended: 0 delivered, 0 dead, 0 uncertain, 0 expired, 1 unreadable, 2 left")
        #expect(summary.json(left: 2, .readFailed).contains(#""exit":26"#))
    }
}
