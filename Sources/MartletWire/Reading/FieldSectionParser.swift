/// Reads lines and fields of a head or trailer section, line by line, and never looks at a byte twice in
/// search of a line's end, however few bytes come at a time.
struct FieldSectionParser: Sendable {
    /// Where a section may be lenient, and what it may cost.
    struct Rules: Sendable {
        let sectionByteLimit: Int
        let lineByteLimit: Int
        let lineCountLimit: Int
        let acceptsBareLineFeed: Bool
        let acceptsFold: Bool
        let isTrailer: Bool
        /// The offset in the message of the section's first byte.
        let baseOffset: Int

        /// Rules for a head. Limits stay below 2^30, so that offsets fit 32 bits and sums never overflow.
        init(head limits: WireLimits) {
            sectionByteLimit = Rules.clamped(limits.headByteLimit)
            lineByteLimit = Rules.clamped(limits.lineByteLimit)
            lineCountLimit = min(limits.lineCountLimit, WireLimits.lineCountMaximum)
            acceptsBareLineFeed = limits.toleratesBareLineFeed && !limits.isStrict
            acceptsFold = !limits.isStrict
            isTrailer = false
            baseOffset = 0
        }

        /// Rules for a trailer section that starts at an offset in its message.
        init(trailers limits: WireLimits, at offset: Int) {
            sectionByteLimit = Rules.clamped(limits.trailerByteLimit)
            lineByteLimit = Rules.clamped(limits.lineByteLimit)
            lineCountLimit = min(limits.lineCountLimit, WireLimits.lineCountMaximum)
            acceptsBareLineFeed = false
            acceptsFold = !limits.isStrict
            isTrailer = true
            baseOffset = offset
        }

        private static func clamped(_ limit: Int) -> Int { max(0, min(limit, 1 << 30)) }
    }

    let rules: Rules
    /// The index of the first byte of the line being read.
    private(set) var lineStart = 0
    /// No LF lies between the line's start and this index.
    private var scanned = 0
    private var lineCount = 0
    private var entries: [FieldBlock.Entry] = []
    /// Bytes inside values that a fold put there: each run stands for one space.
    private var folds: [Range<UInt32>] = []

    init(rules: Rules) { self.rules = rules }

    /// Starts over with another section under the same rules.
    mutating func reset() {
        lineStart = 0
        scanned = 0
        lineCount = 0
        entries = []
        folds = []
    }

    /// The bytes read up to the last complete line.
    var consumedByteCount: Int { lineStart }

    /// The bounds of the next complete line without its end, or nil when more bytes are needed.
    ///
    /// - Throws: a limit, also while the line is incomplete, or a bare LF where that is not tolerated.
    @inline(__always)
    mutating func nextLine(_ section: Span<UInt8>) throws(WireError) -> Range<Int>? {
        let lineLimit = lineStart &+ rules.lineByteLimit
        let limit = min(lineLimit, rules.sectionByteLimit)
        let searchEnd = min(section.count, limit)
        guard searchEnd > scanned, let lineFeed = section.firstLineFeed(in: scanned..<searchEnd) else {
            scanned = max(scanned, searchEnd)
            if section.count >= limit {
                throw limitFault(isLine: lineLimit <= rules.sectionByteLimit, at: limit)
            }
            return nil
        }
        lineCount &+= 1
        if lineCount > rules.lineCountLimit {
            throw fault(.tooManyLines(limit: rules.lineCountLimit), at: lineStart)
        }
        let start = lineStart
        var end = lineFeed
        if end > start, section[end &- 1] == ByteClass.carriageReturn {
            end &-= 1
        } else if !rules.acceptsBareLineFeed {
            throw fault(.bareLineFeed, at: lineFeed)
        }
        lineStart = lineFeed &+ 1
        scanned = lineStart
        return start..<end
    }

    private func limitFault(isLine: Bool, at limit: Int) -> WireError {
        if isLine { return fault(.lineTooLong(limit: rules.lineByteLimit), at: limit) }
        let size = rules.sectionByteLimit
        return fault(rules.isTrailer ? .trailersTooLarge(limit: size) : .headTooLarge(limit: size), at: limit)
    }

    /// Reads one field line, or a folded one, into the block (RFC 9112 §5).
    @inline(__always)
    mutating func addField(_ section: Span<UInt8>, line: Range<Int>) throws(WireError) {
        let nameEnd = section.endOfToken(in: line)
        guard nameEnd > line.lowerBound, nameEnd < line.upperBound, section[nameEnd] == UInt8(ascii: ":")
        else { return try addOddLine(section, line: line, nameEnd: nameEnd) }
        let value = try value(section, in: nameEnd &+ 1..<line.upperBound)
        if entries.isEmpty { entries.reserveCapacity(16) }
        entries.append(
            FieldBlock.Entry(
                nameStart: UInt32(truncatingIfNeeded: line.lowerBound),
                nameEnd: UInt32(truncatingIfNeeded: nameEnd),
                valueStart: UInt32(truncatingIfNeeded: value.lowerBound),
                valueEnd: UInt32(truncatingIfNeeded: value.upperBound)))
    }

    /// The bounds of a value without white space at its ends; refuses control bytes.
    @inline(__always)
    private func value(_ section: Span<UInt8>, in range: Range<Int>) throws(WireError) -> Range<Int> {
        var start = range.lowerBound
        var end = range.upperBound
        while start < end, ByteClass.isBlank(section[start]) { start &+= 1 }
        while end > start, ByteClass.isBlank(section[end &- 1]) { end &-= 1 }
        if let index = section.firstInvalidValueByte(in: start..<end) {
            throw valueFault(section[index], at: index)
        }
        return start..<end
    }

    /// A line that does not start with a name and a colon: folded, or wrong in a way worth naming.
    private mutating func addOddLine(_ section: Span<UInt8>, line: Range<Int>, nameEnd: Int) throws(WireError)
    {
        if ByteClass.isBlank(section[line.lowerBound]) { return try addFold(section, line: line) }
        if nameEnd == line.upperBound { throw fault(.missingColon, at: nameEnd) }
        let byte = section[nameEnd]
        if byte == ByteClass.carriageReturn { throw fault(.bareCarriageReturn, at: nameEnd) }
        if byte == UInt8(ascii: ":") { throw fault(.emptyFieldName, at: nameEnd) }
        var next = nameEnd
        while next < line.upperBound, ByteClass.isBlank(section[next]) { next += 1 }
        if next > nameEnd, next < line.upperBound, section[next] == UInt8(ascii: ":") {
            throw fault(.whitespaceBeforeColon, at: nameEnd)
        }
        var index = nameEnd
        while index < line.upperBound, section[index] != UInt8(ascii: ":") { index += 1 }
        // A control byte is named even where the colon is missing too: it is the worse of the two.
        let isText = ByteClass.isFieldValue(byte)
        throw fault(
            index == line.upperBound && isText ? .missingColon : .malformedFieldName(byte), at: nameEnd)
    }

    /// Joins a folded line to the value before it, with one space between them (RFC 9112 §5.2).
    private mutating func addFold(_ section: Span<UInt8>, line: Range<Int>) throws(WireError) {
        guard rules.acceptsFold else { throw fault(.obsoleteFold, at: line.lowerBound) }
        guard let last = entries.indices.last else { throw fault(.misplacedFold, at: line.lowerBound) }
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

    /// The fields read, with a copy of their bytes.
    @inline(__always)
    func block(_ section: Span<UInt8>) -> FieldBlock {
        let storage = section.copied(0..<lineStart)
        return folds.isEmpty
            ? FieldBlock(storage: storage, entries: entries)
            : unfoldedBlock(FieldBlock(storage: storage, entries: entries))
    }

    /// The block with one space in place of each run of bytes that a fold left.
    private func unfoldedBlock(_ folded: FieldBlock) -> FieldBlock {
        var block = FieldBlock()
        var nextFold = 0
        for (index, entry) in entries.enumerated() {
            var value: [UInt8] = []
            var start = entry.valueStart
            while nextFold < folds.count, folds[nextFold].upperBound <= entry.valueEnd {
                value += folded.storage[Int(start)..<Int(folds[nextFold].lowerBound)]
                value.append(ByteClass.space)
                start = folds[nextFold].upperBound
                nextFold += 1
            }
            value += folded.storage[Int(start)..<Int(entry.valueEnd)]
            block.append(name: folded.name(at: index), value: value)
        }
        return block
    }

    /// Whether no field was read.
    var isEmpty: Bool { entries.isEmpty }

    func fault(_ code: WireErrorCode, at index: Int) -> WireError {
        WireError(code, at: rules.baseOffset + index)
    }

    func valueFault(_ byte: UInt8, at index: Int) -> WireError {
        fault(byte == ByteClass.carriageReturn ? .bareCarriageReturn : .malformedFieldValue(byte), at: index)
    }
}
