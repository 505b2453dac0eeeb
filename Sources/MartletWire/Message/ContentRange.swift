/// The Content-Range field of a 206 or 416 (RFC 9110 §14.4).
package enum ContentRange: Sendable, Hashable {
    /// These bytes of a representation of so many, or of an unknown number: `bytes 0-499/1234`, `bytes
    /// 0-499/*`.
    case satisfied(Range<UInt64>, total: UInt64?)
    /// No byte of a representation of so many: `bytes */1234`.
    case unsatisfied(total: UInt64)

    /// Reads a field value; nil when it is malformed, contradicts itself or is of another unit.
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
        guard let dash = range.firstIndex(of: UInt8(ascii: "-")),
            let first = DecimalNumber(range[..<dash]).exactValue,
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
