import MartletCore
import MartletStreams

extension FuzzEntry {
    /// Streams of server-sent events, and their lines.
    ///
    /// Control 0: bit 0 limits events and lines to 16 bytes instead of 4,096. The following controls are the sizes of
    /// pieces.
    ///
    /// The events, the identifier, the retry time and the error do not depend on how the bytes arrive. Within the
    /// limits they equal those of a plain reader. The same holds for the lines.
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

/// The result of the event parser for an input.
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

/// The result of the line parser for an input.
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
