public import MartletCore

/// Cuts a stream of bytes into lines, however its pieces fall.
///
/// Lines are handed out without their ending, and the first without a UTF-8 byte order mark. It keeps what has come of
/// the line that is not complete and what was not yet asked for; its work is linear in the bytes. A line beyond the limit
/// is an error that stays: it stops a peer that never ends a line from filling the memory.
package struct LineParser: PieceParser {
    /// What ends a line.
    package enum Ending: Hashable, Sendable {
        /// LF, or CR LF. A CR alone belongs to the line.
        case lineFeed
        /// LF, CR LF, or CR alone: as server-sent events have it.
        case any
    }

    /// A line had more bytes than the limit.
    package struct TooLong: Error, Hashable, Sendable {
        /// The most bytes a line may have.
        package let limit: Int

        /// The error of that limit.
        package init(limit: Int) { self.limit = limit }
    }

    static let tooLarge = "a line is longer"

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private let ending: Ending
    private let limit: Int
    /// What has come and was not handed out begins at ``start``; up to ``scanned`` there is no ending in it.
    private var bytes: [UInt8] = []
    private var start = 0
    private var scanned = 0
    private var isFirst = true
    /// Whether an LF is passed over, because the CR before it has ended the line already.
    private var skipsLineFeed = false
    private var failure: TooLong?

    /// A parser at the beginning of a stream.
    /// - Parameter limit: The most bytes a line may have, without its ending and the byte order mark.
    package init(ending: Ending, limit: Int) {
        self.ending = ending
        self.limit = max(0, limit)
    }

    /// Takes the next bytes of the stream.
    package mutating func feed(_ piece: some Collection<UInt8>) {
        if start == bytes.count {
            bytes.removeAll(keepingCapacity: true)
            (start, scanned) = (0, 0)
        } else if start > bytes.count / 2 {
            // What is moved is less than what goes, so that it adds up to no more than the bytes there are.
            bytes.removeSubrange(..<start)
            scanned -= start
            start = 0
        }
        bytes += piece
    }

    /// The next complete line; `nil` when more bytes are needed.
    /// - Throws: ``TooLong``, as soon as that is certain.
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
        var last = end
        if ending == .lineFeed, last > start, bytes[last - 1] == 0x0D { last -= 1 }
        skipsLineFeed = bytes[end] == 0x0D
        return try take(upTo: last, next: end + 1)
    }

    /// The bytes behind the last ending, once the stream has ended and ``next()`` has nothing more; `nil` when there are
    /// none.
    package mutating func rest() throws(TooLong) -> [UInt8]? {
        if let failure { throw failure }
        guard start < bytes.count else { return nil }
        // A mark and nothing behind it is an empty stream.
        if isFirst, bytes[start...].elementsEqual(LineParser.mark) { return nil }
        return try take(upTo: bytes.count, next: bytes.count)
    }

    private mutating func take(upTo end: Int, next: Int) throws(TooLong) -> [UInt8] {
        let marked = markCount(upTo: end)
        // Two bytes of a mark are no mark once the line has ended.
        let skipped = marked == LineParser.mark.count ? marked : 0
        try check(end - start - skipped)
        let line = Array(bytes[(start + skipped)..<end])
        isFirst = false
        start = next
        scanned = next
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

    /// How many bytes at the start are, or may become, the byte order mark.
    private func markCount(upTo end: Int) -> Int {
        guard isFirst else { return 0 }
        let head = bytes[start..<min(end, start + LineParser.mark.count)]
        return LineParser.mark.starts(with: head) ? head.count : 0
    }

    /// Where the next ending begins, sought behind what was searched before.
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
    /// The lines of a body as they arrive, in UTF-8: an `AsyncSequence` of strings, pulled.
    ///
    /// A line ends with LF or CR LF, which it is handed out without; what follows the last ending is a line too. A byte
    /// order mark at the beginning is passed over, and bytes that are no UTF-8 become U+FFFD. One pass reads the body: what
    /// a pass has received and not handed out goes with it.
    public struct Lines: AsyncSequence, Sendable {
        /// A line.
        public typealias Element = String

        fileprivate let pass: ParsedBody<LineParser>

        /// One pass over the lines.
        public struct Iterator: AsyncIteratorProtocol {
            fileprivate var pass: ParsedBody<LineParser>

            /// The next line; `nil` at the end.
            ///
            /// When the task is cancelled it throws `CancellationError` at once, and the connection is closed.
            /// - Throws: An ``HTTPError``: as the body does, and `.limitExceeded` when a line is longer than the limit.
            public mutating func next() async throws -> String? {
                try await nextBytes().map { String(decoding: $0, as: UTF8.self) }
            }

            /// The same as it came, in whatever encoding.
            package mutating func nextBytes() async throws -> [UInt8]? { try await pass.next() }

            /// The next line; `nil` at the end.
            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(any Error) -> String? { try await next() }
        }

        /// A pass that begins with what was not yet read.
        public func makeAsyncIterator() -> Iterator { Iterator(pass: pass) }
    }

    /// The lines of the body, of at most 16 MiB each.
    public var lines: Lines { lines(upTo: .mebibytes(16)) }

    /// The lines of the body.
    /// - Parameter limit: The most bytes of a line; one that is longer is an ``HTTPError`` with the code
    ///   `.limitExceeded`, and costs the connection.
    public func lines(upTo limit: ByteCount) -> Lines {
        Lines(pass: ParsedBody(self, LineParser(ending: .lineFeed, limit: limit.bytes)))
    }
}
