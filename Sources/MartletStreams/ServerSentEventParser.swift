package import MartletCore

/// A parser of server-sent events in a stream of bytes, however the input is split (WHATWG HTML §9.2.6). An event above
/// the limit is a permanent error. An event that the end of the stream cuts off is never returned.
package struct ServerSentEventParser: PieceParser {
    /// The error of an event, or a line, above the limit.
    package typealias TooLarge = LineParser.TooLong

    static let tooLarge = "an event is larger"

    private var lines: LineParser
    private let limit: Int
    private var data: [UInt8] = []
    private var type = ""
    private var pendingID: String
    private var failure: TooLarge?
    private let decoder: PartDecoder?

    /// The current identifier, which a new connection sends in `Last-Event-ID`.
    package private(set) var lastEventID: String
    /// The last `retry` field: the delay before reconnecting, in milliseconds.
    package private(set) var retryMilliseconds: UInt64?

    /// Creates a parser for the beginning of a stream.
    /// - Parameters:
    ///   - lastEventID: The last identifier of the previous stream, if this stream continues that one.
    ///   - limit: The maximum number of bytes of the data of an event, and of each line.
    ///   - decoder: The decoder for the data of the events.
    package init(lastEventID: String = "", limit: Int, decoder: PartDecoder? = nil) {
        (self.decoder, self.lastEventID) = (decoder, lastEventID)
        pendingID = lastEventID
        self.limit = max(0, limit)
        lines = LineParser(ending: .any, limit: limit)
    }

    /// Adds the next bytes of the stream.
    package mutating func feed(_ piece: some Collection<UInt8>) { lines.feed(piece) }

    /// Returns the next complete event; `nil` when more bytes are needed.
    package mutating func next() throws(TooLarge) -> ServerSentEvent? {
        if let failure { throw failure }
        while let line = try lines.next() {
            if line.isEmpty { if let event = dispatch() { return event } } else { try interpret(line) }
        }
        return nil
    }

    /// Returns `nil`: an event that the end of the stream cuts off is incomplete.
    func rest() -> ServerSentEvent? { nil }

    /// Returns the event that an empty line completes; `nil` if it has no data.
    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = pendingID
        defer {
            data.removeAll()
            type = ""
        }
        // Each field has appended an LF, even an empty one; the last LF is removed.
        guard data.popLast() != nil else { return nil }
        return ServerSentEvent(type, data: data, id: lastEventID, decoder: decoder)
    }

    private mutating func interpret(_ line: [UInt8]) throws(TooLarge) {
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        var value = line[min(colon + 1, line.endIndex)...]
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        // A line with an empty name is a comment.
        switch String(decoding: line[..<min(colon, 6)], as: UTF8.self) {
        case "data":
            guard value.count <= limit - data.count else {
                let error = TooLarge(limit: limit)
                (failure, data) = (error, [])
                throw error
            }
            data += value
            data.append(UInt8(ascii: "\n"))
        case "event": type = String(decoding: value, as: UTF8.self)
        case "id" where !value.contains(0): pendingID = String(decoding: value, as: UTF8.self)
        case "retry" where !value.isEmpty && value.allSatisfy({ (0x30...0x39).contains($0) }):
            // A number that overflows becomes the maximum.
            retryMilliseconds = UInt64(String(decoding: value, as: UTF8.self)) ?? .max
        default: break
        }
    }
}
