import MartletCore
import MartletStreams

extension FuzzEntry {
    /// A stream of server-sent events, and its lines.
    ///
    /// Control 0: bit 0 bounds events and lines at 16 bytes instead of 4,096. The controls behind it are the sizes of
    /// pieces.
    ///
    /// However the bytes arrive, the same events, the same identifier, time and error come of them; within the bounds they
    /// are what a plain reader makes of the whole. The same holds for the lines.
    static let serverSentEvents = FuzzEntry("server-sent-events") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let limit = input.isSet(0, at: 0) ? 16 : 4096
        let arrivals = input.arrivals(from: 1)
        let whole = EventReading(input.payload, arrivals[0], limit: limit)
        let lines = LineReading(input.payload, arrivals[0], limit: limit)
        for other in arrivals.dropFirst() {
            let pieces = EventReading(input.payload, other, limit: limit)
            try require(pieces == whole, "\(pieces) when \(other), and \(whole) at once")
            let pieceLines = LineReading(input.payload, other, limit: limit)
            try require(pieceLines == lines, "\(pieceLines) when \(other), and \(lines) at once")
        }
        for event in whole.events {
            try require(!event.event.isEmpty, "an event has no type")
            try require(event.data.utf8.count <= limit * 3, "an event has \(event.data.utf8.count) bytes")
            for text in [event.event, event.id] {
                try require(!text.utf8.contains { $0 == 10 || $0 == 13 }, "a line ends within \(text)")
            }
            try require(!event.id.utf8.contains(0), "an identifier has a NUL")
        }
        let plain = PlainEventStream(input.payload)
        if !whole.isTooLarge {
            try require(plain.events == whole.events, "\(whole.events), and plainly \(plain.events)")
        }
        if !lines.isTooLong {
            try require(plain.lines == lines.lines, "\(lines.lines), and plainly \(plain.lines)")
        }
    }
}

/// What the parser of events made of an input.
private struct EventReading: Equatable {
    var events: [ServerSentEvent] = []
    var lastEventID = ""
    var retry: UInt64?
    var isTooLarge = false

    init(_ bytes: [UInt8], _ arrivals: Arrivals, limit: Int) {
        var parser = ServerSentEventParser(limit: limit)
        var fed = 0
        do throws(ServerSentEventParser.TooLarge) {
            for end in arrivals {
                parser.feed(bytes[fed..<end])
                fed = end
                while let event = try parser.next() { events.append(event) }
            }
        } catch {
            isTooLarge = true
        }
        lastEventID = parser.lastEventID
        retry = parser.retryMilliseconds
    }
}

/// What the parser of lines made of an input.
private struct LineReading: Equatable {
    var lines: [[UInt8]] = []
    var isTooLong = false

    init(_ bytes: [UInt8], _ arrivals: Arrivals, limit: Int) {
        var parser = LineParser(ending: .lineFeed, limit: limit)
        var fed = 0
        do throws(LineParser.TooLong) {
            for end in arrivals {
                parser.feed(bytes[fed..<end])
                fed = end
                while let line = try parser.next() { lines.append(line) }
            }
            if let line = try parser.rest() { lines.append(line) }
        } catch {
            isTooLong = true
        }
    }
}
