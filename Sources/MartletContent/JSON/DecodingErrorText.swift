/// The message texts of a decoder's errors.
package enum DecodingErrorText {
    /// Returns the first bytes of a document, at most 256, with escapes instead of unprintable bytes.
    package static func beginning(of bytes: some Collection<UInt8>) -> String {
        let text = String(decoding: bytes.prefix(256), as: UTF8.self).unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                scalar.escaped(asASCII: true)
            default: String(scalar)
            }
        }
        return text.joined() + (bytes.count > 256 ? "…" : "")
    }

    /// Returns the part of the document that cannot be decoded, and the reason.
    /// - Parameter whole: The name of the document in the text, such as `the body`.
    package static func text(of error: any Error, in whole: String) -> String {
        let (context, what): (DecodingError.Context, String)
        switch error as? DecodingError {
        case .keyNotFound(let key, let found): (context, what) = (found, "has no “\(key.stringValue)”")
        case .valueNotFound(let type, let found):
            (context, what) = (found, "is null instead of a value of type \(type)")
        case .typeMismatch(let type, let found): (context, what) = (found, "is not of type \(type)")
        case .dataCorrupted(let found):
            let cause = found.underlyingError.map { " (\($0))" } ?? ""
            (context, what) = (found, "cannot be decoded: \(found.debugDescription)\(cause)")
        default: return "\(whole) cannot be decoded: \(error)"
        }
        let path = context.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined(
            separator: ""
        ).drop { $0 == "." }
        return path.isEmpty ? "\(whole) \(what)" : "the value at \(path) of \(whole) \(what)"
    }
}
