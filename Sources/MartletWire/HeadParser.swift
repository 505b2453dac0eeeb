/// A parser of the head of a response, however the input is split (RFC 9112 §4, §5). It stores its progress, so that no
/// byte is searched twice if a head arrives byte by byte. An error is reported when its line is complete. A first line
/// that cannot be a status line is rejected at its first wrong byte.
package struct HeadParser: Sendable {
    private var section: FieldSectionParser
    private var version = WireVersion.http11
    /// The status code; 0 until the status line is read.
    private var status = 0
    private var reason = ""
    private var isReasonLatin1 = false

    package init(limits: WireLimits = .default) {
        section = FieldSectionParser(rules: FieldSectionParser.Rules(limits))
    }

    package mutating func reset() {
        section.reset()
        status = 0
        reason = ""
        isReasonLatin1 = false
    }

    /// The number of input bytes of a parsed head, including empty lines before it.
    package var consumedByteCount: Int { section.lineStart }

    /// Continues to parse a head.
    /// - Parameter unread: All bytes from the first byte of the head. Between calls, bytes may only be appended.
    /// - Returns: The head, or `nil` if more bytes are needed.
    /// - Throws: An error in the head, or an exceeded limit, even while the head is incomplete.
    package mutating func parse(_ unread: Span<UInt8>) throws(WireError) -> ResponseHead? {
        if status == 0 { guard try readStatusLine(unread) else { return nil } }
        guard let fields = try section.readFields(unread) else { return nil }
        return ResponseHead(
            version: version, status: status, reason: reason, fields: fields, isReasonLatin1: isReasonLatin1)
    }

    /// Reads the status line; `false` if more bytes are needed.
    private mutating func readStatusLine(_ unread: Span<UInt8>) throws(WireError) -> Bool {
        while true {
            try checkStart(unread)
            guard let line = try section.nextLine(unread) else { return false }
            if line.isEmpty { continue }
            try parseStatusLine(unread, line: line)
            return true
        }
    }

    /// Rejects a first line as soon as it cannot start with `HTTP/`: other protocols may never send a line end.
    private func checkStart(_ unread: Span<UInt8>) throws(WireError) {
        let start = section.lineStart
        guard start < unread.count else { return }
        let first = unread[start]
        if !section.rules.isStrict, first == ByteClass.carriageReturn || first == ByteClass.lineFeed {
            let next = start + 1
            if first == ByteClass.carriageReturn, next < unread.count, unread[next] != ByteClass.lineFeed {
                throw WireError(.bareCarriageReturn, at: start)
            }
            return
        }
        if let index = StartLine.firstDifference(unread, from: start) { throw WireError(.invalidStatusLine, at: index) }
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
                throw section.valueError(unread[index], at: index)
            }
            reason = StartLine.reason(unread, in: range)
            // Valid UTF-8 has the same length as its source bytes.
            isReasonLatin1 = reason.utf8.count != range.count
        }
        status = value
    }
}

/// A parser of the head of a request, however the input is split, like ``HeadParser`` for responses.
struct RequestHeadParser: Sendable {
    private var section: FieldSectionParser
    /// The head, once its request line was read.
    private var head: RequestHead?

    init(limits: WireLimits = .default) { section = FieldSectionParser(rules: FieldSectionParser.Rules(limits)) }

    mutating func reset() {
        section.reset()
        head = nil
    }

    /// The number of input bytes of a parsed head, including empty lines before it.
    var consumedByteCount: Int { section.lineStart }

    /// Continues to parse a head, like ``HeadParser/parse(_:)``.
    mutating func parse(_ unread: Span<UInt8>) throws(WireError) -> RequestHead? {
        while head == nil {
            guard let line = try section.nextLine(unread) else { return nil }
            if !line.isEmpty || section.rules.isStrict { try parseRequestLine(unread, line: line) }
        }
        guard let fields = try section.readFields(unread) else { return nil }
        head?.fields = fields
        return head
    }

    private mutating func parseRequestLine(_ unread: Span<UInt8>, line: Range<Int>) throws(WireError) {
        let methodEnd = unread.endOfToken(in: line)
        guard methodEnd > line.lowerBound, methodEnd < line.upperBound, unread[methodEnd] == ByteClass.space else {
            throw WireError(.invalidRequestLine, at: methodEnd)
        }
        var targetEnd = methodEnd + 1
        while targetEnd < line.upperBound, ByteClass.isTarget(unread[targetEnd]) { targetEnd += 1 }
        guard targetEnd > methodEnd + 1, targetEnd < line.upperBound, unread[targetEnd] == ByteClass.space else {
            throw WireError(.invalidRequestLine, at: targetEnd)
        }
        let versionRange = targetEnd + 1..<line.upperBound
        let version = try StartLine.version(unread, in: versionRange, code: .invalidRequestLine)
        guard versionRange.count == 8 else { throw WireError(.invalidRequestLine, at: targetEnd + 9) }
        head = RequestHead(
            method: unread.text(line.lowerBound..<methodEnd), target: unread.text(methodEnd + 1..<targetEnd),
            version: version)
    }
}

/// The common parts of status lines and request lines.
private enum StartLine {
    /// The version in the first eight bytes of a range (RFC 9112 §2.3).
    /// - Throws: `code` if they are not a version, or ``WireErrorCode/unsupportedVersion``.
    static func version(_ bytes: Span<UInt8>, in range: Range<Int>, code: WireErrorCode) throws(WireError)
        -> WireVersion
    {
        let start = range.lowerBound
        let end = range.upperBound
        if range.count >= 8 {
            // The eight characters in one word, like those of `firstDifference`.
            switch bytes.word(at: start) {
            case 0x312E_312F_5054_5448: return .http11
            case 0x302E_312F_5054_5448: return .http10
            default: break
            }
        }
        if let index = firstDifference(bytes.extracting(0..<end), from: start) { throw WireError(code, at: index) }
        guard start + 5 < end, ByteClass.isDigit(bytes[start + 5]) else {
            throw WireError(code, at: min(start + 5, end))
        }
        guard bytes[start + 5] == UInt8(ascii: "1") else { throw WireError(.unsupportedVersion, at: start + 5) }
        guard start + 7 < end, bytes[start + 6] == UInt8(ascii: "."), ByteClass.isDigit(bytes[start + 7]) else {
            throw WireError(code, at: min(start + 6, end))
        }
        return bytes[start + 7] == UInt8(ascii: "0") ? .http10 : .http11
    }

    /// The first index at which bytes differ from `HTTP/`; `nil` if the available bytes are equal.
    @inline(__always) static func firstDifference(_ bytes: Span<UInt8>, from start: Int) -> Int? {
        // The five characters in one word, the first one in the lowest bits, so that no string is accessed.
        var expected: UInt64 = 0x2F_50_54_54_48
        if start >= 0, start &+ 8 <= bytes.count {
            let difference = (bytes.word(at: start) ^ expected) & 0xFF_FFFF_FFFF
            return difference == 0 ? nil : start &+ difference.trailingZeroBitCount >> 3
        }
        let end = min(start &+ 5, bytes.count)
        var index = start
        while index < end {
            if bytes[index] != UInt8(truncatingIfNeeded: expected) { return index }
            expected >>= 8
            index &+= 1
        }
        return nil
    }

    /// The reason phrase in a range. The most common one, `OK`, is not copied.
    static func reason(_ bytes: Span<UInt8>, in range: Range<Int>) -> String {
        let start = range.lowerBound
        if range.count == 2, bytes[start] == UInt8(ascii: "O"), bytes[start + 1] == UInt8(ascii: "K") { return "OK" }
        return bytes.text(range)
    }
}

/// A parser of the lines and fields of a head or trailer section. It searches no byte twice for the end of a line that
/// arrives in parts. Plain lines that have arrived are read in one pass; all others are read by the general functions,
/// which alone report errors.
struct FieldSectionParser: Sendable {
    /// The limits of a section, and the leniency of its parser.
    struct Rules: Sendable {
        let sectionByteLimit: Int
        let lineByteLimit: Int
        let lineCountLimit: Int
        let acceptsBareLineFeed: Bool
        let isStrict: Bool
        let isTrailer: Bool
        /// The offset in the message of the section's first byte.
        let baseOffset: Int

        /// Creates the rules for a head, or for trailers at an offset in their message. Limits are clamped to 2^30, so
        /// that offsets fit 32 bits and sums never overflow.
        init(_ limits: WireLimits, trailersAt offset: Int? = nil) {
            isTrailer = offset != nil
            sectionByteLimit = Rules.clamped(isTrailer ? limits.trailerByteLimit : limits.headByteLimit)
            lineByteLimit = Rules.clamped(limits.lineByteLimit)
            lineCountLimit = min(limits.lineCountLimit, WireLimits.lineCountMaximum)
            acceptsBareLineFeed = limits.toleratesBareLineFeed && !limits.isStrict && !isTrailer
            isStrict = limits.isStrict
            baseOffset = offset ?? 0
        }

        private static func clamped(_ limit: Int) -> Int { max(0, min(limit, 1 << 30)) }
    }

    let rules: Rules
    /// The index of the first byte of the current line: the number of bytes in the complete lines.
    private(set) var lineStart = 0
    /// The index up to which the current line was searched for an LF.
    private var scanned = 0
    private var lineCount = 0
    /// The fields of earlier calls, and those before a line that is not plain.
    private var entries: [FieldBlock.Entry] = []
    /// The positions of line folds inside values; each is replaced by one space.
    private var folds: [Range<UInt32>] = []
    private var marks: UInt64 = 0

    init(rules: Rules) { self.rules = rules }

    mutating func reset() {
        lineStart = 0
        scanned = 0
        lineCount = 0
        entries = []
        folds = []
        marks = 0
    }

    /// Reads field lines up to the empty line.
    /// - Returns: The fields, with a copy of their bytes; `nil` if more bytes are needed.
    mutating func readFields(_ section: Span<UInt8>) throws(WireError) -> FieldBlock? {
        while true {
            if let block = readPlainFields(section) { return block }
            guard let line = try nextLine(section) else { return nil }
            if line.isEmpty {
                return folds.isEmpty
                    ? FieldBlock(section.extracting(first: lineStart), entries.span, marks: marks)
                    : unfoldedBlock(section)
            }
            try addField(section, line: line)
        }
    }

    /// Reads the next plain field lines, if they are within the limits and no part of the first was searched before.
    /// - Returns: The fields, if these lines are the whole section and its empty line follows; else `nil`.
    private mutating func readPlainFields(_ section: Span<UInt8>) -> FieldBlock? {
        guard scanned == lineStart else { return nil }
        // On the stack, so that a section that arrives as a whole needs no memory for its entries.
        return unsafe withUnsafeTemporaryAllocation(of: FieldBlock.Entry.self, capacity: 32) { plain in
            var (count, start, marks) = (0, lineStart, marks)
            let end = min(section.count, rules.sectionByteLimit)
            let countLimit = min(rules.lineCountLimit &- lineCount, plain.count)
            while count < countLimit, start < end {
                let lineEnd = min(end, start &+ rules.lineByteLimit)
                guard let (entry, next) = section.plainField(from: start, before: lineEnd) else { break }
                unsafe plain.initializeElement(at: count, to: entry)
                marks |= FieldBlock.mark(Int(entry.nameEnd &- entry.nameStart), unsafe section[unchecked: start])
                count &+= 1
                start = next
            }
            (lineStart, scanned, self.marks) = (start, start, marks)
            lineCount &+= count
            let fields = unsafe Span(_unsafeElements: UnsafeBufferPointer(rebasing: plain[..<count]))
            if entries.isEmpty, lineCount < rules.lineCountLimit, start &+ 2 <= end, rules.lineByteLimit >= 2,
                section[start] == ByteClass.carriageReturn, section[start &+ 1] == ByteClass.lineFeed
            {
                lineStart = start &+ 2
                return FieldBlock(section.extracting(first: lineStart), fields, marks: marks)
            }
            for index in fields.indices { entries.append(fields[index]) }
            return nil
        }
    }

    /// The bounds of the next complete line without its end; `nil` if more bytes are needed.
    /// - Throws: An exceeded limit, even while the line is incomplete, or a bare LF if it is not tolerated.
    @inline(__always) mutating func nextLine(_ section: Span<UInt8>) throws(WireError) -> Range<Int>? {
        let lineLimit = lineStart &+ rules.lineByteLimit
        let limit = min(lineLimit, rules.sectionByteLimit)
        let searchEnd = min(section.count, limit)
        guard searchEnd > scanned, let lineFeed = section.firstLineFeed(in: scanned..<searchEnd) else {
            scanned = max(scanned, searchEnd)
            if section.count >= limit { throw limitError(isLine: lineLimit <= rules.sectionByteLimit, at: limit) }
            return nil
        }
        lineCount &+= 1
        if lineCount > rules.lineCountLimit {
            throw makeError(.tooManyLines(limit: rules.lineCountLimit), at: lineStart)
        }
        let start = lineStart
        var end = lineFeed
        if end > start, section[end &- 1] == ByteClass.carriageReturn {
            end &-= 1
        } else if !rules.acceptsBareLineFeed {
            throw makeError(.bareLineFeed, at: lineFeed)
        }
        lineStart = lineFeed &+ 1
        scanned = lineStart
        return start..<end
    }

    private func limitError(isLine: Bool, at limit: Int) -> WireError {
        if isLine { return makeError(.lineTooLong(limit: rules.lineByteLimit), at: limit) }
        let size = rules.sectionByteLimit
        return makeError(rules.isTrailer ? .trailersTooLarge(limit: size) : .headTooLarge(limit: size), at: limit)
    }

    /// Adds one field line, or a folded one (RFC 9112 §5).
    private mutating func addField(_ section: Span<UInt8>, line: Range<Int>) throws(WireError) {
        let nameEnd = section.endOfToken(in: line)
        guard nameEnd > line.lowerBound, nameEnd < line.upperBound, section[nameEnd] == UInt8(ascii: ":") else {
            return try addOddLine(section, line: line, nameEnd: nameEnd)
        }
        let value = try value(section, in: nameEnd &+ 1..<line.upperBound)
        entries.append(FieldBlock.Entry(name: line.lowerBound..<nameEnd, value: value))
        marks |= FieldBlock.mark(nameEnd - line.lowerBound, section[line.lowerBound])
    }

    /// The bounds of a value without white space at its ends; rejects control bytes.
    private func value(_ section: Span<UInt8>, in range: Range<Int>) throws(WireError) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, ByteClass.isBlank(section[start]) { start &+= 1 }
        while end > start, ByteClass.isBlank(section[end &- 1]) { end &-= 1 }
        if let index = section.firstInvalidValueByte(in: start..<end) { throw valueError(section[index], at: index) }
        return start..<end
    }

    /// Adds a line that does not start with a name and a colon: a folded line, or an error.
    private mutating func addOddLine(_ section: Span<UInt8>, line: Range<Int>, nameEnd: Int) throws(WireError) {
        if ByteClass.isBlank(section[line.lowerBound]) { return try addFold(section, line: line) }
        if nameEnd == line.upperBound { throw makeError(.missingColon, at: nameEnd) }
        let byte = section[nameEnd]
        if byte == ByteClass.carriageReturn { throw makeError(.bareCarriageReturn, at: nameEnd) }
        if byte == UInt8(ascii: ":") { throw makeError(.emptyFieldName, at: nameEnd) }
        var next = nameEnd
        while next < line.upperBound, ByteClass.isBlank(section[next]) { next += 1 }
        if next > nameEnd, next < line.upperBound, section[next] == UInt8(ascii: ":") {
            throw makeError(.whitespaceBeforeColon, at: nameEnd)
        }
        var index = nameEnd
        while index < line.upperBound, section[index] != UInt8(ascii: ":") { index += 1 }
        // A control byte is reported even if the colon is missing too, because it is the more serious error.
        let isText = ByteClass.isFieldValue(byte)
        throw makeError(index == line.upperBound && isText ? .missingColon : .malformedFieldName(byte), at: nameEnd)
    }

    /// Appends a folded line to the value before it, after one space (RFC 9112 §5.2).
    private mutating func addFold(_ section: Span<UInt8>, line: Range<Int>) throws(WireError) {
        guard !rules.isStrict else { throw makeError(.obsoleteFold, at: line.lowerBound) }
        guard let last = entries.indices.last else { throw makeError(.misplacedFold, at: line.lowerBound) }
        let value = try value(section, in: line)
        if value.isEmpty { return }
        let start = UInt32(truncatingIfNeeded: value.lowerBound)
        if entries[last].valueStart == entries[last].valueEnd {
            entries[last].valueStart = start
        } else {
            folds.append(entries[last].valueEnd..<start)
        }
        entries[last].valueEnd = UInt32(truncatingIfNeeded: value.upperBound)
    }

    /// The fields, with each fold replaced by one space.
    private func unfoldedBlock(_ section: Span<UInt8>) -> FieldBlock {
        var block = FieldBlock()
        var nextFold = 0
        for entry in entries {
            var value: [UInt8] = []
            var start = entry.valueStart
            while nextFold < folds.count, folds[nextFold].upperBound <= entry.valueEnd {
                value += section.copied(Int(start)..<Int(folds[nextFold].lowerBound))
                value.append(ByteClass.space)
                start = folds[nextFold].upperBound
                nextFold += 1
            }
            value += section.copied(Int(start)..<Int(entry.valueEnd))
            block.append(name: section.copied(Int(entry.nameStart)..<Int(entry.nameEnd)), value: value)
        }
        return block
    }

    func makeError(_ code: WireErrorCode, at index: Int) -> WireError { WireError(code, at: rules.baseOffset + index) }

    func valueError(_ byte: UInt8, at index: Int) -> WireError {
        makeError(byte == ByteClass.carriageReturn ? .bareCarriageReturn : .malformedFieldValue(byte), at: index)
    }
}
