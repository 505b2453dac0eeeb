public import MartletCore

/// A parser that splits a byte stream into lines, however the input is split.
///
/// Lines are returned without their ending, and the first without a UTF-8 byte order mark. The parser stores the
/// incomplete line and the lines that were not requested yet; its work is linear in the bytes. A line above the limit
/// is a permanent error, so that a peer cannot fill the memory with an endless line.
package struct LineParser: PieceParser {
    /// The bytes that end a line.
    package enum Ending: Hashable, Sendable {
        /// LF, or CR LF. A single CR belongs to the line.
        case lineFeed
        /// LF, CR LF, or a single CR, as in server-sent events.
        case any
    }

    /// The error of a line with more bytes than the limit.
    package struct TooLong: Error, Hashable, Sendable {
        /// The maximum number of bytes of a line.
        package let limit: Int

        /// Creates the error for a limit.
        package init(limit: Int) { self.limit = limit }
    }

    static let tooLarge = "a line is longer"

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private let ending: Ending
    private let limit: Int
    /// The buffered bytes. Those from ``start`` on were not returned yet; those before ``scanned`` contain no ending.
    private var bytes: [UInt8] = []
    private var start = 0
    private var scanned = 0
    private var isFirst = true
    /// Whether the stream began with the byte order mark of UTF-8.
    private(set) var isMarked = false
    /// Whether the next LF is skipped, because the preceding CR has already ended the line.
    private var skipsLineFeed = false
    private var failure: TooLong?

    /// Creates a parser for the beginning of a stream.
    /// - Parameter limit: The maximum number of bytes of a line, without its ending and the byte order mark.
    package init(ending: Ending, limit: Int) {
        self.ending = ending
        self.limit = max(0, limit)
    }

    /// Adds the next bytes of the stream.
    package mutating func feed(_ piece: some Collection<UInt8>) {
        if start == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            (start, scanned) = (0, 0)
        } else if start > bytes.count / 2 {
            // Fewer bytes are moved than removed, so all moves together are linear in the size of the stream.
            bytes.removeSubrange(..<start)
            scanned -= start
            start = 0
        }
        bytes += piece
    }

    /// Returns the next complete line; `nil` when more bytes are needed.
    /// - Throws: ``TooLong``, as soon as the line is known to exceed the limit.
    package mutating func next() throws(TooLong) -> [UInt8]? {
        if let failure { throw failure }
        if skipsLineFeed, start < bytes.count {
            skipsLineFeed = false
            if bytes[start] == 0x0A {
                start += 1
                scanned = max(scanned, start)
            }
        }
        guard let end = endOfLine() else {
            scanned = bytes.count
            let held = bytes.last == 0x0D && ending == .lineFeed ? 1 : 0
            try check(bytes.count - start - held - markCount(upTo: bytes.count))
            return nil
        }
        skipsLineFeed = bytes[end] == 0x0D
        let hasReturn = ending == .lineFeed && end > start && bytes[end - 1] == 0x0D
        return try take(upTo: hasReturn ? end - 1 : end, next: end + 1)
    }

    /// Returns the bytes after the last ending, once ``next()`` has returned all lines; `nil` without such bytes.
    package mutating func rest() throws(TooLong) -> [UInt8]? {
        if let failure { throw failure }
        guard start < bytes.count else { return nil }
        // A stream of only a mark is empty.
        if isFirst, bytes[start...].elementsEqual(LineParser.mark) { return nil }
        return try take(upTo: bytes.count, next: bytes.count)
    }

    private mutating func take(upTo end: Int, next: Int) throws(TooLong) -> [UInt8] {
        let marked = markCount(upTo: end)
        // If the line ends within the mark, the bytes are part of the line.
        let skipped = marked == LineParser.mark.count ? marked : 0
        try check(end - start - skipped)
        let line = Array(bytes[(start + skipped)..<end])
        if isFirst { (isFirst, isMarked) = (false, skipped > 0) }
        (start, scanned) = (next, next)
        return line
    }

    private mutating func check(_ count: Int) throws(TooLong) {
        guard count > limit else { return }
        let failure = TooLong(limit: limit)
        self.failure = failure
        bytes = []
        (start, scanned) = (0, 0)
        throw failure
    }

    /// Returns the number of bytes at the start that are, or may become, the byte order mark.
    private func markCount(upTo end: Int) -> Int {
        guard isFirst else { return 0 }
        let head = bytes[start..<min(end, start + LineParser.mark.count)]
        return LineParser.mark.starts(with: head) ? head.count : 0
    }

    /// Returns the position of the next ending. Bytes that were already searched are skipped.
    private func endOfLine() -> Int? {
        let span = bytes.span
        let takesReturn = ending == .any
        for index in scanned..<span.count {
            let byte = span[index]
            if byte == 0x0A || (takesReturn && byte == 0x0D) { return index }
        }
        return nil
    }
}

extension ResponseBody {
    /// The lines of a body as they arrive, as an `AsyncSequence` of strings that reads on demand.
    ///
    /// A line ends with LF or CR LF, which is removed. The bytes after the last ending are also a line. Lines are
    /// decoded by the `charset` of `Content-Type`, which may be UTF-8 (the default), windows-1252 (also ISO-8859-1 and
    /// US-ASCII) or ISO-8859-15. The byte order mark of UTF-8 is skipped, and bytes that are not UTF-8 become U+FFFD.
    /// The body can be read in one pass: bytes that a pass has received and not returned are lost with it.
    public struct Lines: AsyncSequence, Sendable {
        /// A line, without its ending.
        public typealias Element = String

        fileprivate let pass: ParsedBody<LineParser>
        fileprivate let charset: String
        /// The encoding of the charset; `nil` if it is unknown, or has line feeds of several bytes.
        fileprivate let encoding: TextDecoding.Encoding?

        fileprivate init(pass: ParsedBody<LineParser>, charset: String) {
            (self.pass, self.charset) = (pass, charset)
            encoding = TextDecoding.Encoding(label: charset).flatMap {
                [.utf8, .windows1252, .iso885915].contains($0) ? $0 : nil
            }
        }

        /// One pass over the lines.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var pass: ParsedBody<LineParser>
            fileprivate let lines: Lines

            /// Returns the next line; `nil` at the end. Cancelling the task closes the connection immediately.
            /// - Throws: An ``HTTPError``: that of the body, `.limitExceeded` for a line above the limit, or
            ///   `.decodingFailed` for another charset, with a ``ResponseDecodingError``; `CancellationError`.
            public mutating func next() async throws -> String? {
                let encoding = try encoding()
                return try await nextBytes().map { text($0, encoding) }
            }

            /// Returns the next line, with those that are already available; `nil` at the end.
            mutating func nextLines() async throws -> [String]? {
                let encoding = try encoding()
                return try await nextByteLines()?.map { text($0, encoding) }
            }

            private func text(_ line: [UInt8], _ encoding: TextDecoding.Encoding) -> String {
                TextDecoding.text(line, in: pass.parser.isMarked ? .utf8 : encoding)
            }

            private func encoding() throws(HTTPError) -> TextDecoding.Encoding {
                if let encoding = lines.encoding { return encoding }
                throw pass.reader.rejection(
                    .decodingFailed,
                    "lines cannot be read in the charset “\(lines.charset.prefix(100))”: collect the body",
                    underlying: ResponseDecodingError.unknownCharset(lines.charset))
            }

            /// Returns the bytes of the next line, in any encoding; `nil` at the end.
            package mutating func nextBytes() async throws -> [UInt8]? { try await pass.next() }

            /// Returns the bytes of the next line, with those of lines that are already available; `nil` at the end.
            mutating func nextByteLines() async throws -> [[UInt8]]? {
                try await nextBytes().map { [$0] + pass.ready() }
            }

            /// Returns the next line; `nil` at the end.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(any Error) -> String? {
                try await next()
            }
        }

        /// Returns a pass that starts with the bytes that were not read yet.
        public func makeAsyncIterator() -> Iterator { Iterator(pass: pass, lines: self) }
    }

    /// The lines of the body, of at most 16 MiB each.
    public var lines: Lines { lines(upTo: .mebibytes(16)) }

    /// Returns the lines of the body.
    /// - Parameter limit: The maximum size of a line. A longer line closes the connection.
    public func lines(upTo limit: ByteCount) -> Lines {
        Lines(
            pass: ParsedBody(self, LineParser(ending: .lineFeed, limit: limit.bytes)),
            charset: exchange(with: [], isCollected: false).contentType?.charset ?? "utf-8")
    }
}
