/// Reads the head of a request from bytes that arrive in any pieces, as ``HeadParser`` does for responses.
package struct RequestHeadParser: Sendable {
    /// A complete head.
    package struct Parsed: Sendable, Equatable {
        /// The head.
        package let head: RequestHead
        /// The bytes it takes in the input, empty lines before it included.
        package let byteCount: Int
    }

    private let limits: WireLimits
    private var section: FieldSectionParser
    private var method = ""
    private var target = ""
    private var version = WireVersion.http11

    /// Makes a parser at the start of a head.
    package init(limits: WireLimits = .default) {
        self.limits = limits
        section = FieldSectionParser(rules: .init(head: limits))
    }

    /// Makes the parser ready for the next head.
    package mutating func reset() {
        section.reset()
        method = ""
    }

    /// Reads on.
    ///
    /// - Parameter unread: all bytes from the head's first one on; since the last call it may only have
    ///   grown.
    /// - Returns: the head, or nil when more bytes are needed.
    /// - Throws: what is wrong with the head, or the limit it exceeds, also while it is incomplete.
    package mutating func parse(_ unread: Span<UInt8>) throws(WireError) -> Parsed? {
        while let line = try section.nextLine(unread) {
            if method.isEmpty {
                if line.isEmpty, !limits.isStrict { continue }
                try parseRequestLine(unread, line: line)
            } else if line.isEmpty {
                let fields = section.block(unread)
                let head = RequestHead(method: method, target: target, version: version, fields: fields)
                return Parsed(head: head, byteCount: section.consumedByteCount)
            } else {
                try section.addField(unread, line: line)
            }
        }
        return nil
    }

    private mutating func parseRequestLine(_ unread: Span<UInt8>, line: Range<Int>) throws(WireError) {
        let methodEnd = unread.endOfToken(in: line)
        guard methodEnd > line.lowerBound, methodEnd < line.upperBound, unread[methodEnd] == ByteClass.space
        else {
            throw WireError(.invalidRequestLine, at: methodEnd)
        }
        var targetEnd = methodEnd + 1
        while targetEnd < line.upperBound, ByteClass.isTarget(unread[targetEnd]) { targetEnd += 1 }
        guard targetEnd > methodEnd + 1, targetEnd < line.upperBound, unread[targetEnd] == ByteClass.space
        else {
            throw WireError(.invalidRequestLine, at: targetEnd)
        }
        let versionRange = targetEnd + 1..<line.upperBound
        version = try StartLine.version(unread, in: versionRange, code: .invalidRequestLine)
        guard versionRange.count == 8 else { throw WireError(.invalidRequestLine, at: targetEnd + 9) }
        method = unread.text(line.lowerBound..<methodEnd)
        target = unread.text(methodEnd + 1..<targetEnd)
    }
}
