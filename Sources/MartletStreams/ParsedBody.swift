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

extension PieceParser {
    /// The next element, for which pieces are taken as needed; `nil` after the last one.
    mutating func next(_ take: () async throws -> [UInt8]?) async throws -> Element? {
        while true {
            if let element = try next() { return element }
            guard let piece = try await take() else { return try rest() }
            feed(piece)
        }
    }
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

    /// The elements that are complete without a further piece of the body.
    mutating func ready() -> [Parser.Element] {
        var elements: [Parser.Element] = []
        // The error of an element beyond the limit stays, and is thrown by the next pass.
        while let element = try? parser.next() { elements.append(element) }
        return elements
    }

    /// The next element; `nil` after the last one.
    mutating func next() async throws -> Parser.Element? {
        if isEnded { return nil }
        let reader = reader
        var reachesEnd = false
        defer { isEnded = reachesEnd }
        do {
            return try await parser.next {
                let piece = try await reader.next()
                reachesEnd = piece == nil
                return piece
            }
        } catch let error as LineParser.TooLong {
            throw reader.limitExceeded("\(Parser.tooLarge) than the limit of \(error.limit) bytes")
        }
    }
}
