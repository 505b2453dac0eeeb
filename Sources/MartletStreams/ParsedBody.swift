import MartletCore

/// A parser of a stream of bytes, however the input is split.
protocol PieceParser: Sendable {
    associatedtype Element: Sendable

    /// The subject and the verb of the message for an element above the limit.
    static var tooLarge: String { get }

    /// Adds the next bytes of the stream.
    mutating func feed(_ piece: some Collection<UInt8>)

    /// Returns the next complete element; `nil` when more bytes are needed.
    mutating func next() throws(LineParser.TooLong) -> Element?

    /// Returns the element that the end of the stream completes, once ``next()`` has returned all others.
    mutating func rest() throws(LineParser.TooLong) -> Element?
}

/// One pass over the elements of a body.
struct ParsedBody<Parser: PieceParser>: Sendable {
    let reader: BodyReader
    private(set) var parser: Parser
    private var isEnded = false

    init(_ body: ResponseBody, _ parser: Parser) {
        reader = body.reader
        self.parser = parser
    }

    /// Returns the elements that the bytes received so far complete.
    mutating func ready() -> [Parser.Element] {
        var elements: [Parser.Element] = []
        // The error of an element above the limit is permanent, and the next pass throws it.
        while let element = try? parser.next() { elements.append(element) }
        return elements
    }

    /// Returns the next element, and reads pieces as needed; `nil` after the last one.
    mutating func next() async throws -> Parser.Element? {
        do {
            while !isEnded {
                if let element = try parser.next() { return element }
                guard let piece = try await reader.next() else {
                    isEnded = true
                    return try parser.rest()
                }
                parser.feed(piece)
            }
            return nil
        } catch let error as LineParser.TooLong {
            throw reader.rejection(.limitExceeded, "\(Parser.tooLarge) than the limit of \(error.limit) bytes")
        }
    }
}
