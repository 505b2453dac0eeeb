/// One range of bytes in a request (RFC 9110 §14.1.2).
package enum ByteRange: Sendable, Hashable {
    /// From an offset to the end: `500-`.
    case from(UInt64)
    /// From an offset to another, both included: `500-999`.
    case closed(UInt64, UInt64)
    /// A number of bytes at the end: `-500`.
    case suffix(UInt64)

    /// The range in a Range field, without `bytes=`.
    package var text: String {
        switch self {
        case .from(let first): "\(first)-"
        case .closed(let first, let last): "\(first)-\(last)"
        case .suffix(let count): "-\(count)"
        }
    }

    /// The bytes that the range selects in a representation of this length; `nil` for none (RFC 9110 §14.1.1).
    package func resolved(in length: UInt64) -> Range<UInt64>? {
        switch self {
        case .from(let first): first < length ? first..<length : nil
        case .closed(let first, let last):
            first < length && last >= first ? first..<(last >= length ? length : last + 1) : nil
        case .suffix(let count): count > 0 && length > 0 ? length - min(count, length)..<length : nil
        }
    }
}

/// The Content-Range field of a 206 or 416 (RFC 9110 §14.4).
package enum ContentRange: Sendable, Hashable {
    /// These bytes of a representation of a known or unknown length: `bytes 0-499/1234`, `bytes 0-499/*`.
    case satisfied(Range<UInt64>, total: UInt64?)
    /// The range is unsatisfiable for a representation of this length: `bytes */1234`.
    case unsatisfied(total: UInt64)

    /// Parses a field value; `nil` if it is malformed or contradictory, or has another unit.
    package init?(parsing text: String) {
        let bytes = Array(text.utf8)
        guard let blank = bytes.firstIndex(of: ByteClass.space),
            ByteClass.equalsIgnoringCase(bytes[..<blank], "bytes".utf8.span),
            let slash = bytes[blank...].firstIndex(of: UInt8(ascii: "/"))
        else { return nil }
        let range = ByteClass.trimmed(bytes[blank..<slash])
        let totalText = ByteClass.trimmed(bytes[(slash + 1)...])
        let total = DecimalNumber(totalText).exactValue
        guard total != nil || totalText.elementsEqual("*".utf8) else { return nil }
        if range.elementsEqual("*".utf8) {
            guard let total else { return nil }
            self = .unsatisfied(total: total)
            return
        }
        guard let dash = range.firstIndex(of: UInt8(ascii: "-")), let first = DecimalNumber(range[..<dash]).exactValue,
            let last = DecimalNumber(range[(dash + 1)...]).exactValue, first <= last
        else { return nil }
        if let total, last >= total { return nil }
        self = .satisfied(first..<last + 1, total: total)
    }

    /// The field value. An empty range, which the field cannot express, is written as unsatisfied.
    package var text: String {
        switch self {
        case .satisfied(let range, let total):
            range.isEmpty
                ? "bytes */\(total ?? 0)"
                : "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(total.map { "\($0)" } ?? "*")"
        case .unsatisfied(let total): "bytes */\(total)"
        }
    }
}

/// The Range field of a request: `bytes=0-499, -500` (RFC 9110 §14.2).
package struct RangeField: Sendable, Hashable {
    /// The maximum number of ranges. It stops fields that request thousands of overlapping ranges.
    package static let rangeCountLimit = 64
    /// The ranges in the order of the field; never empty.
    package let ranges: [ByteRange]

    /// Creates a field from its ranges; `nil` for none.
    package init?(_ ranges: [ByteRange]) {
        guard !ranges.isEmpty else { return nil }
        self.ranges = ranges
    }

    /// Parses a field value; `nil` if it is malformed or too long, or has another unit: the field is then ignored.
    package init?(parsing text: String) {
        let bytes = Array(text.utf8)
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")),
            ByteClass.equalsIgnoringCase(bytes[..<equals], "bytes".utf8.span)
        else { return nil }
        var ranges: [ByteRange] = []
        for element in ElementList(bytes[(equals + 1)...]) {
            guard ranges.count < RangeField.rangeCountLimit, let range = RangeField.range(element) else { return nil }
            ranges.append(range)
        }
        self.init(ranges)
    }

    package var text: String { "bytes=" + ranges.map(\.text).joined(separator: ",") }

    /// The bytes that the ranges select in a representation of this length; empty if there are none (status 416).
    package func resolved(in length: UInt64) -> [Range<UInt64>] { ranges.compactMap { $0.resolved(in: length) } }

    private static func range(_ element: ArraySlice<UInt8>) -> ByteRange? {
        guard let dash = element.firstIndex(of: UInt8(ascii: "-")) else { return nil }
        let first = element[..<dash]
        let last = element[(dash + 1)...]
        if first.isEmpty { return DecimalNumber(last).exactValue.map { .suffix($0) } }
        guard let start = DecimalNumber(first).exactValue else { return nil }
        if last.isEmpty { return .from(start) }
        guard let end = DecimalNumber(last).exactValue, end >= start else { return nil }
        return .closed(start, end)
    }
}
