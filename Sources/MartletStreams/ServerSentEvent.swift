public import MartletCore

/// An event of a stream of server-sent events (WHATWG HTML §9.2).
public struct ServerSentEvent: Hashable, Sendable {
    /// What kind of event it is; `message` where the stream does not say.
    public var type: String
    /// The data: what the `data` fields said, one line each.
    public var data: String
    /// The identifier that was last set before the event was complete, here or in an event before; empty when none was.
    public var lastEventID: String

    /// An event.
    public init(type: String = "message", data: String, lastEventID: String = "") {
        self.type = type
        self.data = data
        self.lastEventID = lastEventID
    }
}

/// Reads server-sent events from a stream of bytes, however its pieces fall (WHATWG HTML §9.2.6).
///
/// Its output depends on the bytes alone. An event beyond the limit is an error that stays; an event that the stream ends
/// within is never seen.
package struct ServerSentEventParser: PieceParser {
    /// An event, or a line of it, was larger than the limit.
    package typealias TooLarge = LineParser.TooLong

    static let tooLarge = "an event is larger"

    private var lines: LineParser
    private let limit: Int
    private var data: [UInt8] = []
    private var type = ""
    private var pendingID: String
    private var failure: TooLarge?

    /// The identifier in force: what a new connection says in `Last-Event-ID`.
    package private(set) var lastEventID: String

    /// The last `retry` field: how many milliseconds to wait before connecting again.
    package private(set) var retryMilliseconds: UInt64?

    /// A parser at the beginning of a stream.
    /// - Parameters:
    ///   - lastEventID: The identifier in force before, when the stream goes on where another one stopped.
    ///   - limit: The most bytes the data of an event, and each line, may have.
    package init(lastEventID: String = "", limit: Int) {
        self.lastEventID = lastEventID
        pendingID = lastEventID
        self.limit = max(0, limit)
        lines = LineParser(ending: .any, limit: limit)
    }

    /// Takes the next bytes of the stream.
    package mutating func feed(_ piece: some Collection<UInt8>) { lines.feed(piece) }

    /// The next complete event; `nil` when more bytes are needed.
    package mutating func next() throws(TooLarge) -> ServerSentEvent? {
        if let failure { throw failure }
        while let line = try lines.next() {
            if line.isEmpty { if let event = dispatch() { return event } } else { try interpret(line) }
        }
        return nil
    }

    /// Nothing: an event that the stream ends within is not complete.
    func rest() -> ServerSentEvent? { nil }

    private mutating func fail() -> TooLarge {
        let error = TooLarge(limit: limit)
        failure = error
        data = []
        return error
    }

    /// The empty line: what was gathered becomes an event, if there is data.
    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = pendingID
        defer {
            data.removeAll()
            type = ""
        }
        // Each field has appended an LF, an empty one too; the last one goes.
        guard !data.isEmpty else { return nil }
        data.removeLast()
        return ServerSentEvent(
            type: type.isEmpty ? "message" : type, data: String(decoding: data, as: UTF8.self),
            lastEventID: lastEventID)
    }

    private mutating func interpret(_ line: [UInt8]) throws(TooLarge) {
        let colon = line.firstIndex(of: UInt8(ascii: ":")) ?? line.endIndex
        let name = line[..<colon]
        // A comment.
        if name.isEmpty { return }
        var value = line[min(colon + 1, line.endIndex)...]
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        if name.elementsEqual("data".utf8) {
            guard value.count <= limit - data.count else { throw fail() }
            data += value
            data.append(UInt8(ascii: "\n"))
        } else if name.elementsEqual("event".utf8) {
            type = String(decoding: value, as: UTF8.self)
        } else if name.elementsEqual("id".utf8) {
            if !value.contains(0) { pendingID = String(decoding: value, as: UTF8.self) }
        } else if name.elementsEqual("retry".utf8) {
            if let number = ServerSentEventParser.number(value) { retryMilliseconds = number }
        }
    }

    /// A number of nothing but digits; the greatest there is when it is greater than that.
    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        var number: UInt64 = 0
        for digit in digits {
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            let (sum, carry) = tens.addingReportingOverflow(UInt64(digit - 0x30))
            if overflow || carry { return .max }
            number = sum
        }
        return number
    }
}

extension ResponseBody {
    /// The server-sent events of a body as they arrive (WHATWG HTML §9.2): an `AsyncSequence`, pulled.
    ///
    /// An event that the body ends within is not handed out. Neither the status nor the content type is looked at here, and
    /// nothing is connected again: ``HTTPSession/events(from:headers:options:)`` does that.
    public struct ServerSentEvents: AsyncSequence, Sendable {
        /// An event.
        public typealias Element = ServerSentEvent

        fileprivate let pass: ParsedBody<ServerSentEventParser>

        /// One pass over the events.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var pass: ParsedBody<ServerSentEventParser>

            /// The next event; `nil` at the end.
            ///
            /// When the task is cancelled it throws `CancellationError` at once, and the connection is closed.
            /// - Throws: An ``HTTPError``: as the body does, and `.limitExceeded` when an event is larger than the limit.
            public mutating func next() async throws -> ServerSentEvent? { try await pass.next() }

            /// The next event; `nil` at the end.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> ServerSentEvent? { try await next() }
        }

        /// A pass that begins with what was not yet read.
        public func makeAsyncIterator() -> Iterator { Iterator(pass: pass) }
    }

    /// The server-sent events of the body, of at most 16 MiB each.
    public var serverSentEvents: ServerSentEvents { serverSentEvents(upTo: .mebibytes(16)) }

    /// The server-sent events of the body.
    /// - Parameter limit: The most bytes of an event's data, and of each line; more are an ``HTTPError`` with the code
    ///   `.limitExceeded`, and cost the connection.
    public func serverSentEvents(upTo limit: ByteCount) -> ServerSentEvents {
        ServerSentEvents(pass: ParsedBody(self, ServerSentEventParser(limit: limit.bytes)))
    }
}
