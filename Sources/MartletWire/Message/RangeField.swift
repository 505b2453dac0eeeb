/// The Range field of a request: `bytes=0-499, -500` (RFC 9110 §14.2).
package struct RangeField: Sendable, Hashable {
    /// The most ranges that are read: stops fields that ask for thousands of overlapping ones.
    package static let rangeCountLimit = 64

    /// The ranges in the order asked for; never empty.
    package let ranges: [ByteRange]

    /// Makes the field of some ranges; nil for none.
    package init?(_ ranges: [ByteRange]) {
        guard !ranges.isEmpty else { return nil }
        self.ranges = ranges
    }

    /// Reads a field value; nil when it is malformed, of another unit or too long, in which case RFC 9110
    /// §14.2 has a server ignore the field.
    package init?(parsing text: String) {
        let bytes = Array(text.utf8)
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")),
            ByteClass.equalsIgnoringCase(bytes[..<equals], "bytes".utf8.span)
        else { return nil }
        var ranges: [ByteRange] = []
        for element in ElementList(bytes[(equals + 1)...]) {
            guard ranges.count < RangeField.rangeCountLimit, let range = RangeField.range(element) else {
                return nil
            }
            ranges.append(range)
        }
        self.init(ranges)
    }

    /// The field value.
    package var text: String { "bytes=" + ranges.map(\.text).joined(separator: ",") }

    /// What the ranges mean in a representation; empty when none is satisfiable (status 416).
    ///
    /// - Parameter length: the bytes of the whole representation.
    package func resolved(in length: UInt64) -> [Range<UInt64>] {
        ranges.compactMap { $0.resolved(in: length) }
    }

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
