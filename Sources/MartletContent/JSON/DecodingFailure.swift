/// The words for an error of a decoder.
package enum DecodingFailure {
    /// The first bytes of a document, at most 256, with escapes in place of what cannot be printed.
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

    /// - Parameter whole: The document in words, such as `the body`.
    /// The part of the document that cannot be decoded, and the reason.
    package static func text(of error: any Error, in whole: String) -> String {
        let (context, what): (DecodingError.Context, String)
        switch error as? DecodingError {
        case .keyNotFound(let key, let found): (context, what) = (found, "has no “\(key.stringValue)”")
        case .valueNotFound(let type, let found): (context, what) = (found, "is null, and not a \(type)")
        case .typeMismatch(let type, let found): (context, what) = (found, "is not a \(type)")
        case .dataCorrupted(let found):
            let cause = found.underlyingError.map { " (\($0))" } ?? ""
            (context, what) = (found, "cannot be decoded: \(found.debugDescription)\(cause)")
        case nil: return "\(whole) cannot be decoded: \(error)"
        @unknown default: return "\(whole) cannot be decoded: \(error)"
        }
        let path = context.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined(
            separator: ""
        ).drop { $0 == "." }
        return path.isEmpty ? "\(whole) \(what)" : "the value at \(path) of \(whole) \(what)"
    }
}
