import MartletCore

/// Parses a stream of bytes, however the input is split.
protocol PieceParser: Sendable {
    associatedtype Element: Sendable

    /// The subject and verb of the error of an element beyond the limit.
    static var tooLarge: String { get }

    /// Takes the next bytes of the stream.
    mutating func feed(_ piece: some Collection<UInt8>)

    /// The next complete element; `nil` when more bytes are needed.
    mutating func next() throws(LineParser.TooLong) -> Element?

    /// The element that the end of the stream completes, once ``next()`` has nothing more.
    mutating func rest() throws(LineParser.TooLong) -> Element?
}

/// One pass over the elements of a body.
struct ParsedBody<Parser: PieceParser>: Sendable {
    private let reader: BodyReader
    private(set) var parser: Parser
    private var isEnded = false

    init(_ body: ResponseBody, _ parser: Parser) {
        reader = body.reader
        self.parser = parser
    }

    mutating func next() async throws -> Parser.Element? {
        do {
            while true {
                if let element = try parser.next() { return element }
                if isEnded { return nil }
                guard let piece = try await reader.next() else {
                    isEnded = true
                    return try parser.rest()
                }
                parser.feed(piece)
            }
        } catch let error as LineParser.TooLong {
            throw reader.limitExceeded("\(Parser.tooLarge) than the limit of \(error.limit) bytes")
        }
    }
}
