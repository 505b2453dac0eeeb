/// Reads the head of a response from bytes that arrive in any pieces (RFC 9112 §4, §5).
///
/// It remembers how far it looked, so a head that comes byte by byte costs no more than one that comes whole.
/// What is wrong is refused at the line it is in, and a first line that cannot become a status line at its
/// first byte.
package struct HeadParser: Sendable {
    /// A complete head.
    package struct Parsed: Sendable, Equatable {
        /// The head.
        package let head: ResponseHead
        /// The bytes it takes in the input, empty lines before it included.
        package let byteCount: Int
    }

    private let limits: WireLimits
    private var section: FieldSectionParser
    private var version = WireVersion.http11
    /// 0 until the status line was read.
    private var status = 0
    private var reason = ""
    private var isReasonLatin1 = false

    /// Makes a parser at the start of a head.
    package init(limits: WireLimits = .default) {
        self.limits = limits
        section = FieldSectionParser(rules: .init(head: limits))
    }

    /// Makes the parser ready for the next head.
    package mutating func reset() {
        section.reset()
        status = 0
        reason = ""
        isReasonLatin1 = false
    }

    /// Reads on.
    ///
    /// - Parameter unread: all bytes from the head's first one on; since the last call it may only have
    ///   grown.
    /// - Returns: the head, or nil when more bytes are needed.
    /// - Throws: what is wrong with the head, or the limit it exceeds, also while it is incomplete.
    package mutating func parse(_ unread: Span<UInt8>) throws(WireError) -> Parsed? {
        guard let head = try head(unread) else { return nil }
        return Parsed(head: head, byteCount: consumedByteCount)
    }

    /// The bytes that a head takes in the input, empty lines before it included, once it was read.
    var consumedByteCount: Int { section.consumedByteCount }

    /// Reads on as ``parse(_:)`` does, for the head alone.
    mutating func head(_ unread: Span<UInt8>) throws(WireError) -> ResponseHead? {
        if status == 0 {
            guard try readStatusLine(unread) else { return nil }
        }
        while let line = try section.nextLine(unread) {
            if line.isEmpty {
                return ResponseHead(
                    version: version, status: status, reason: reason, fields: section.block(unread),
                    isReasonLatin1: isReasonLatin1)
            }
            try section.addField(unread, line: line)
        }
        return nil
    }

    /// Reads the status line; false when more bytes are needed.
    private mutating func readStatusLine(_ unread: Span<UInt8>) throws(WireError) -> Bool {
        while true {
            try checkStart(unread)
            guard let line = try section.nextLine(unread) else { return false }
            if line.isEmpty { continue }
            try parseStatusLine(unread, line: line)
            return true
        }
    }

    /// Refuses a first line as soon as it cannot start with `HTTP/`: other protocols often send no line end
    /// at all.
    private func checkStart(_ unread: Span<UInt8>) throws(WireError) {
        let start = section.lineStart
        guard start < unread.count else { return }
        let first = unread[start]
        if !limits.isStrict, first == ByteClass.carriageReturn || first == ByteClass.lineFeed {
            let next = start + 1
            if first == ByteClass.carriageReturn, next < unread.count, unread[next] != ByteClass.lineFeed {
                throw WireError(.bareCarriageReturn, at: start)
            }
            return
        }
        if let index = StartLine.firstDifference(unread, from: start) {
            throw WireError(.invalidStatusLine, at: index)
        }
    }

    private mutating func parseStatusLine(_ unread: Span<UInt8>, line: Range<Int>) throws(WireError) {
        let start = line.lowerBound
        version = try StartLine.version(unread, in: start..<line.upperBound, code: .invalidStatusLine)
        let afterVersion = start + 8
        guard afterVersion < line.upperBound, unread[afterVersion] == ByteClass.space else {
            throw WireError(.invalidStatusLine, at: min(afterVersion, line.upperBound))
        }
        var value = 0
        for index in afterVersion + 1..<afterVersion + 4 {
            guard index < line.upperBound, let digit = ByteClass.digit(unread[index]) else {
                throw WireError(.invalidStatusCode, at: min(index, line.upperBound))
            }
            value = value * 10 + digit
        }
        guard value >= 100 else { throw WireError(.invalidStatusCode, at: afterVersion + 1) }
        let afterStatus = afterVersion + 4
        if afterStatus < line.upperBound {
            guard unread[afterStatus] == ByteClass.space else {
                let isDigit = ByteClass.isDigit(unread[afterStatus])
                throw WireError(isDigit ? .invalidStatusCode : .invalidStatusLine, at: afterStatus)
            }
            let range = afterStatus + 1..<line.upperBound
            if let index = unread.firstInvalidValueByte(in: range) {
                throw section.valueFault(unread[index], at: index)
            }
            reason = StartLine.reason(unread, in: range)
            // UTF-8 is as long as what it was read from.
            isReasonLatin1 = reason.utf8.count != range.count
        }
        status = value
    }
}
