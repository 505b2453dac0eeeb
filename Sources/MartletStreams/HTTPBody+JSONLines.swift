public import MartletCore

extension HTTPBody {
    /// Creates a body of JSON lines (NDJSON, `application/x-ndjson`) from an asynchronous sequence that can be read
    /// only once. Each value is encoded and sent as soon as the sequence returns it, and the next one is requested when
    /// the server can receive more, so an endless sequence needs little memory.
    ///
    /// A value that cannot be encoded, or an error of the sequence, ends the call with `.bodySourceFailed`; the server
    /// has then received the lines before it.
    /// - Parameter encoder: The encoder of the values. The encoders of the session and of a host are not used, because
    ///   values are encoded while the body is sent. Line breaks of a `JSONEncoder` that formats its output become
    ///   spaces.
    public static func jsonLines<Values: AsyncSequence & Sendable>(_ values: Values, encoder: BodyEncoder = .json())
        -> HTTPBody where Values.Element: Encodable, Values.AsyncIterator: SendableMetatype
    { .once(EncodedLines(values: values, encoder: encoder), contentType: jsonLinesType) }

    /// Creates a body of JSON lines from an asynchronous sequence that can be opened again from its beginning, so that
    /// the body can be sent again; otherwise like `jsonLines(_:encoder:)` of an asynchronous sequence.
    /// - Parameter open: A closure that returns the sequence; called each time the body is sent.
    public static func jsonLines<Values: AsyncSequence & Sendable>(
        encoder: BodyEncoder = .json(), _ open: @escaping @Sendable () -> Values
    ) -> HTTPBody where Values.Element: Encodable, Values.AsyncIterator: SendableMetatype {
        .stream(contentType: jsonLinesType) { EncodedLines(values: open(), encoder: encoder) }
    }

    /// Creates a body of JSON lines from values in memory, which are encoded while the body is sent, about 16 KiB at a
    /// time. The body can be sent again.
    public static func jsonLines<Values: Collection & Sendable>(_ values: Values, encoder: BodyEncoder = .json())
        -> HTTPBody where Values.Element: Encodable
    { .stream(contentType: jsonLinesType) { EncodedBatches(values: values, encoder: encoder) } }

    private static let jsonLinesType = "application/x-ndjson"
}

extension BodyEncoder {
    /// Encodes a value as one line.
    fileprivate func line(_ value: some Encodable) throws -> [UInt8] {
        // In JSON, a line break within a string is escaped: the others are insignificant.
        try bytes(of: value).map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 } + [0x0A]
    }
}

/// The lines of an asynchronous sequence of values.
private struct EncodedLines<Values: AsyncSequence & Sendable>: AsyncSequence, Sendable
where Values.Element: Encodable, Values.AsyncIterator: SendableMetatype {
    typealias Element = [UInt8]

    let values: Values
    let encoder: BodyEncoder

    struct Iterator: AsyncIteratorProtocol {
        var values: Values.AsyncIterator
        let encoder: BodyEncoder

        mutating func next() async throws -> [UInt8]? { try await next(isolation: #isolation) }

        mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> [UInt8]? {
            guard let value = try await values.next(isolation: actor) else { return nil }
            return try encoder.line(value)
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(values: values.makeAsyncIterator(), encoder: encoder) }
}

/// The lines of values in memory, several in each piece.
private struct EncodedBatches<Values: Collection & Sendable>: AsyncSequence, Sendable where Values.Element: Encodable {
    typealias Element = [UInt8]

    let values: Values
    let encoder: BodyEncoder

    struct Iterator: AsyncIteratorProtocol {
        var values: Values.Iterator
        let encoder: BodyEncoder

        mutating func next() async throws -> [UInt8]? {
            var piece: [UInt8] = []
            while piece.count < 16 * 1024, let value = values.next() { piece += try encoder.line(value) }
            return piece.isEmpty ? nil : piece
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(values: values.makeIterator(), encoder: encoder) }
}
