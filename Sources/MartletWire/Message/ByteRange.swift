/// One range of bytes as a request asks for it (RFC 9110 §14.1.2).
package enum ByteRange: Sendable, Hashable {
    /// From an offset to the end: `500-`.
    case from(UInt64)
    /// From an offset to another, both included: `500-999`.
    case closed(UInt64, UInt64)
    /// The last bytes, so many of them: `-500`.
    case suffix(UInt64)

    /// The range as it stands in a Range field, without `bytes=`.
    package var text: String {
        switch self {
        case .from(let first): "\(first)-"
        case .closed(let first, let last): "\(first)-\(last)"
        case .suffix(let count): "-\(count)"
        }
    }

    /// The bytes this means in a representation, or nil when it is unsatisfiable (RFC 9110 §14.1.1).
    ///
    /// - Parameter length: the bytes of the whole representation.
    package func resolved(in length: UInt64) -> Range<UInt64>? {
        switch self {
        case .from(let first): first < length ? first..<length : nil
        case .closed(let first, let last):
            first < length && last >= first ? first..<(last >= length ? length : last + 1) : nil
        case .suffix(let count): count > 0 && length > 0 ? length - min(count, length)..<length : nil
        }
    }
}
