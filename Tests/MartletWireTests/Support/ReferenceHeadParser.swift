import MartletWire

/// A parser of response heads that looks at one byte at a time and starts again with each call: the reference for
/// ``HeadParser``, which reads eight bytes at a time and stores its progress.
struct ReferenceHeadParser {
    /// The result of parsing the bytes that have arrived so far.
    enum Outcome: Equatable {
        case incomplete
        case head(ResponseHead, byteCount: Int)
        case fault(WireError)
    }

    private let bytes: [UInt8]
    private let limits: WireLimits
    private var lineStart = 0
    private var lineCount = 0

    static func outcome(_ bytes: [UInt8], limits: WireLimits) -> Outcome {
        var parser = ReferenceHeadParser(bytes: bytes, limits: limits)
        do throws(WireError) {
            guard let head = try parser.head() else { return .incomplete }
            return .head(head, byteCount: parser.lineStart)
        } catch { return .fault(error) }
    }

    private init(bytes: [UInt8], limits: WireLimits) { (self.bytes, self.limits) = (bytes, limits) }

    private mutating func head() throws(WireError) -> ResponseHead? {
        var line = 0..<0
        repeat {
            try checkStart()
            guard let next = try nextLine() else { return nil }
            line = next
        } while line.isEmpty
        var head = try statusLine(line)
        var fields: [(name: [UInt8], value: [UInt8])] = []
        while let line = try nextLine() {
            if line.isEmpty {
                for field in fields { head.fields.append(name: field.name, value: field.value) }
                return head
            }
            try add(line, to: &fields)
        }
        return nil
    }

    private func byte(_ index: Int) -> UInt8? { index < bytes.count ? bytes[index] : nil }

    private func checkStart() throws(WireError) {
        guard let first = byte(lineStart) else { return }
        if !limits.isStrict, first == 0x0D || first == 0x0A {
            if first == 0x0D, let next = byte(lineStart + 1), next != 0x0A {
                throw WireError(.bareCarriageReturn, at: lineStart)
            }
            return
        }
        for (index, expected) in zip(lineStart..., "HTTP/".utf8) where byte(index) ?? expected != expected {
            throw WireError(.invalidStatusLine, at: index)
        }
    }

    private mutating func nextLine() throws(WireError) -> Range<Int>? {
        let start = lineStart
        let limit = min(start + limits.lineByteLimit, limits.headByteLimit)
        guard let end = (start..<max(start, min(limit, bytes.count))).first(where: { bytes[$0] == 0x0A }) else {
            if bytes.count < limit { return nil }
            let isLine = start + limits.lineByteLimit <= limits.headByteLimit
            throw WireError(
                isLine ? .lineTooLong(limit: limits.lineByteLimit) : .headTooLarge(limit: limits.headByteLimit),
                at: limit)
        }
        lineCount += 1
        if lineCount > limits.lineCountLimit {
            throw WireError(.tooManyLines(limit: limits.lineCountLimit), at: start)
        }
        lineStart = end + 1
        if end > start, bytes[end - 1] == 0x0D { return start..<end - 1 }
        if limits.isStrict || !limits.toleratesBareLineFeed { throw WireError(.bareLineFeed, at: end) }
        return start..<end
    }

    private func statusLine(_ line: Range<Int>) throws(WireError) -> ResponseHead {
        func at(_ offset: Int) -> UInt8? {
            line.lowerBound + offset < line.upperBound ? bytes[line.lowerBound + offset] : nil
        }
        func fault(_ code: WireErrorCode, _ offset: Int) -> WireError {
            WireError(code, at: min(line.lowerBound + offset, line.upperBound))
        }
        func isDigit(_ byte: UInt8?) -> Bool { byte.map { (0x30...0x39).contains($0) } ?? false }
        guard isDigit(at(5)) else { throw fault(.invalidStatusLine, 5) }
        guard at(5) == 0x31 else { throw fault(.unsupportedVersion, 5) }
        guard at(6) == 0x2E, isDigit(at(7)) else { throw fault(.invalidStatusLine, 6) }
        guard at(8) == 0x20 else { throw fault(.invalidStatusLine, 8) }
        var status = 0
        for offset in 9...11 {
            guard let byte = at(offset), isDigit(byte) else { throw fault(.invalidStatusCode, offset) }
            status = status * 10 + Int(byte) - 0x30
        }
        guard status >= 100 else { throw fault(.invalidStatusCode, 9) }
        if let byte = at(12), byte != 0x20 { throw fault(isDigit(byte) ? .invalidStatusCode : .invalidStatusLine, 12) }
        let reason = line.count > 13 ? line.lowerBound + 13..<line.upperBound : 0..<0
        for index in reason { try checkText(index) }
        return ResponseHead(
            version: at(7) == 0x30 ? .http10 : .http11, status: status, reason: ByteText.string(bytes[reason]))
    }

    private func checkText(_ index: Int) throws(WireError) {
        let byte = bytes[index]
        if (byte < 0x20 && byte != 0x09) || byte == 0x7F {
            throw WireError(byte == 0x0D ? .bareCarriageReturn : .malformedFieldValue(byte), at: index)
        }
    }

    private func isBlank(_ index: Int) -> Bool { bytes[index] == 0x20 || bytes[index] == 0x09 }

    /// The bytes of a value without blanks at its ends.
    private func value(_ range: Range<Int>) throws(WireError) -> [UInt8] {
        var range = range
        while let first = range.first, isBlank(first) { range.removeFirst() }
        while let last = range.last, isBlank(last) { range.removeLast() }
        for index in range { try checkText(index) }
        return Array(bytes[range])
    }

    private func add(_ line: Range<Int>, to fields: inout [(name: [UInt8], value: [UInt8])]) throws(WireError) {
        let tokens = Set("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        let nameEnd = line.first { !tokens.contains(bytes[$0]) } ?? line.upperBound
        if nameEnd > line.lowerBound, nameEnd < line.upperBound, bytes[nameEnd] == 0x3A {
            fields.append((Array(bytes[line.lowerBound..<nameEnd]), try value(nameEnd + 1..<line.upperBound)))
            return
        }
        if isBlank(line.lowerBound) {
            if limits.isStrict { throw WireError(.obsoleteFold, at: line.lowerBound) }
            guard let last = fields.indices.last else { throw WireError(.misplacedFold, at: line.lowerBound) }
            let more = try value(line)
            let needsSpace = !more.isEmpty && !fields[last].value.isEmpty
            fields[last].value += (needsSpace ? [0x20] : []) + more
            return
        }
        if nameEnd == line.upperBound { throw WireError(.missingColon, at: nameEnd) }
        let byte = bytes[nameEnd]
        if byte == 0x0D { throw WireError(.bareCarriageReturn, at: nameEnd) }
        if byte == 0x3A { throw WireError(.emptyFieldName, at: nameEnd) }
        let rest = nameEnd..<line.upperBound
        if isBlank(nameEnd), let next = rest.first(where: { !isBlank($0) }), bytes[next] == 0x3A {
            throw WireError(.whitespaceBeforeColon, at: nameEnd)
        }
        let isText = (byte >= 0x20 && byte != 0x7F) || byte == 0x09
        let hasColon = rest.contains { bytes[$0] == 0x3A }
        throw WireError(!hasColon && isText ? .missingColon : .malformedFieldName(byte), at: nameEnd)
    }
}
