/// The message texts of a decoder's errors.
package enum DecodingErrorText {
    /// The maximum length of a coding path or a reason, in bytes. Both may contain names and values of the document.
    private static let partByteCount = 1024

    /// Returns the first bytes of a document or text, with escapes instead of unprintable bytes.
    package static func beginning(of bytes: some Collection<UInt8>, limit: Int = 256) -> String {
        let text = String(decoding: bytes.prefix(limit), as: UTF8.self).unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                scalar.escaped(asASCII: true)
            default: String(scalar)
            }
        }
        return text.joined() + (bytes.count > limit ? "…" : "")
    }

    /// Returns the part of the document that cannot be decoded, and the reason. The names and values of the document in
    /// it are escaped and shortened.
    /// - Parameter whole: The name of the document in the text, such as `the body`.
    package static func text(of error: any Error, in whole: String) -> String {
        let (context, what): (DecodingError.Context, String)
        switch error as? DecodingError {
        case .keyNotFound(let key, let found):
            (context, what) = (found, "has no “\(beginning(of: key.stringValue.utf8))”")
        case .valueNotFound(let type, let found):
            (context, what) = (found, "is null instead of a value of type \(type)")
        case .typeMismatch(let type, let found): (context, what) = (found, "is not of type \(type)")
        case .dataCorrupted(let found):
            let cause = found.underlyingError.map { " (\($0))" } ?? ""
            (context, what) = (found, "cannot be decoded: \(found.debugDescription)\(cause)")
        default: return "\(whole) cannot be decoded: \(beginning(of: "\(error)".utf8, limit: partByteCount))"
        }
        let path = context.codingPath.map { key in
            key.intValue.map { "[\($0)]" } ?? ".\(beginning(of: key.stringValue.utf8))"
        }.joined(separator: "").drop { $0 == "." }
        let place = path.isEmpty ? whole : "the value at \(beginning(of: path.utf8, limit: partByteCount)) of \(whole)"
        return "\(place) \(beginning(of: what.utf8, limit: partByteCount))"
    }
}
