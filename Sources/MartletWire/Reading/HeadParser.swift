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

/// Reads the head of a request from bytes that arrive in any pieces, as ``HeadParser`` does for responses.
struct RequestHeadParser: Sendable {
    private let limits: WireLimits
    private var section: FieldSectionParser
    private var method = ""
    private var target = ""
    private var version = WireVersion.http11

    /// Makes a parser at the start of a head.
    init(limits: WireLimits = .default) {
        self.limits = limits
        section = FieldSectionParser(rules: .init(head: limits))
    }

    /// Makes the parser ready for the next head.
    mutating func reset() {
        section.reset()
        method = ""
    }

    /// The bytes that a head takes in the input, empty lines before it included, once it was read.
    var consumedByteCount: Int { section.consumedByteCount }

    /// Reads on, as ``HeadParser/head(_:)``.
    mutating func head(_ unread: Span<UInt8>) throws(WireError) -> RequestHead? {
        while let line = try section.nextLine(unread) {
            if method.isEmpty {
                if line.isEmpty, !limits.isStrict { continue }
                try parseRequestLine(unread, line: line)
            } else if line.isEmpty {
                return RequestHead(
                    method: method, target: target, version: version, fields: section.block(unread))
            } else {
                try section.addField(unread, line: line)
            }
        }
        return nil
    }

    private mutating func parseRequestLine(_ unread: Span<UInt8>, line: Range<Int>) throws(WireError) {
        let methodEnd = unread.endOfToken(in: line)
        guard methodEnd > line.lowerBound, methodEnd < line.upperBound, unread[methodEnd] == ByteClass.space
        else { throw WireError(.invalidRequestLine, at: methodEnd) }
        var targetEnd = methodEnd + 1
        while targetEnd < line.upperBound, ByteClass.isTarget(unread[targetEnd]) { targetEnd += 1 }
        guard targetEnd > methodEnd + 1, targetEnd < line.upperBound, unread[targetEnd] == ByteClass.space
        else { throw WireError(.invalidRequestLine, at: targetEnd) }
        let versionRange = targetEnd + 1..<line.upperBound
        version = try StartLine.version(unread, in: versionRange, code: .invalidRequestLine)
        guard versionRange.count == 8 else { throw WireError(.invalidRequestLine, at: targetEnd + 9) }
        method = unread.text(line.lowerBound..<methodEnd)
        target = unread.text(methodEnd + 1..<targetEnd)
    }
}

/// The parts that status lines and request lines share.
enum StartLine {
    /// The version that the first eight bytes of a range name (RFC 9112 §2.3).
    ///
    /// - Throws: `code` when they are no version, or ``WireErrorCode/unsupportedVersion``.
    static func version(
        _ bytes: Span<UInt8>, in range: Range<Int>, code: WireErrorCode
    ) throws(WireError) -> WireVersion {
        let start = range.lowerBound
        let end = range.upperBound
        if let index = firstDifference(bytes.extracting(0..<end), from: start) {
            throw WireError(code, at: index)
        }
        guard start + 5 < range.upperBound, ByteClass.isDigit(bytes[start + 5]) else {
            throw WireError(code, at: min(start + 5, range.upperBound))
        }
        guard bytes[start + 5] == UInt8(ascii: "1") else {
            throw WireError(.unsupportedVersion, at: start + 5)
        }
        guard start + 7 < range.upperBound, bytes[start + 6] == UInt8(ascii: "."),
            ByteClass.isDigit(bytes[start + 7])
        else { throw WireError(code, at: min(start + 6, range.upperBound)) }
        return bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
    }

    /// The first index at which bytes differ from `HTTP/`, or nil if they do not as far as they reach.
    @inline(__always)
    static func firstDifference(_ bytes: Span<UInt8>, from start: Int) -> Int? {
        // The five characters in one word, the first one lowest: no string is touched per head.
        var expected: UInt64 = 0x2F_50_54_54_48
        let end = min(start &+ 5, bytes.count)
        var index = start
        while index < end {
            if bytes[index] != UInt8(truncatingIfNeeded: expected) { return index }
            expected >>= 8
            index &+= 1
        }
        return nil
    }

    /// The reason phrase in a range; the commonest one without a copy.
    static func reason(_ bytes: Span<UInt8>, in range: Range<Int>) -> String {
        let start = range.lowerBound
        if range.count == 2, bytes[start] == UInt8(ascii: "O"), bytes[start + 1] == UInt8(ascii: "K") {
            return "OK"
        }
        return bytes.text(range)
    }
}
