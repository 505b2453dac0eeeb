package import MartletURL

/// What `Content-Disposition` says of a response: whether to show or to save it, and under which name (RFC 6266).
///
/// Parameters that are malformed are passed over, and of several with one name the first counts. Parsing takes time linear
/// in the text. The names in it are the peer's: make files of ``suggestedFilename`` only.
public struct ContentDisposition: Hashable, Sendable {
    /// What to do with it, in lower case: `inline`, `attachment`, `form-data`, or another word, which means `attachment`
    /// (RFC 6266 §4.2).
    public let type: String
    /// The `filename` parameter as it came: neither percent-decoded nor safe.
    public let filename: String?
    /// The `filename*` parameter, decoded (RFC 8187): it counts before ``filename``. Not safe.
    public let extendedFilename: String?

    /// Parses a field value; `nil` when it does not begin with a word.
    ///
    /// A bare name in quotes, as old servers send it without a type, is none.
    public init?(_ text: String) {
        var reader = FieldReader(text)
        reader.skipBlanks()
        guard let type = reader.token() else { return nil }
        reader.skipBlanks()
        guard reader.isAtEnd || reader.current == UInt8(ascii: ";") else { return nil }
        var filename: String?
        var extended: String?
        while reader.take(UInt8(ascii: ";")) {
            reader.skipBlanks()
            if let (name, value, isQuoted) = ContentDisposition.parameter(&reader) {
                if name == "filename" {
                    filename = filename ?? value
                } else if name == "filename*", !isQuoted {
                    extended = extended ?? ExtendedValue(value)?.text
                }
            }
            reader.skipToSemicolon()
        }
        self.type = type.lowercased()
        self.filename = filename
        extendedFilename = extended
    }

    /// Whether the response is meant to be saved and not shown.
    public var isAttachment: Bool { type != "inline" && type != "form-data" }

    /// A name that a file can safely have: the last component of what the peer proposes, without control characters and
    /// leading dots, of at most 255 bytes; `nil` when nothing is left of it.
    public var suggestedFilename: String? {
        if let extendedFilename, let name = SafeFilename(extendedFilename) { return name.text }
        return filename.flatMap { SafeFilename($0)?.text }
    }

    private static func parameter(
        _ reader: inout FieldReader
    ) -> (name: String, value: String, isQuoted: Bool)? {
        guard let name = reader.token() else { return nil }
        // White space around the sign is not allowed, and common enough to be taken (as browsers do).
        reader.skipBlanks()
        guard reader.take(UInt8(ascii: "=")) else { return nil }
        reader.skipBlanks()
        let isQuoted = reader.current == UInt8(ascii: "\"")
        guard let value = isQuoted ? reader.quotedString() : reader.word() else { return nil }
        reader.skipBlanks()
        guard reader.isAtEnd || reader.current == UInt8(ascii: ";") else { return nil }
        return (name.lowercased(), value, isQuoted)
    }
}

/// A parameter's value with its character encoding and percent-encoded bytes: `UTF-8'en'%e2%82%ac` (RFC 8187 §3.2).
struct ExtendedValue: Hashable, Sendable {
    /// The text it stands for.
    let text: String

    /// Parses a value; `nil` when it is malformed, in another encoding than UTF-8 and ISO-8859-1, or no text in its own.
    init?(_ value: String) {
        let parts = value.utf8.split(
            separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let charset = String(Substring(parts[0])).lowercased()
        guard charset == "utf-8" || charset == "iso-8859-1" else { return nil }
        var bytes: [UInt8] = []
        let encoded = Array(parts[2])
        var index = 0
        while index < encoded.count {
            if encoded[index] == UInt8(ascii: "%") {
                guard let byte = PercentEncoding.value(ofHexAt: index, in: encoded[...]) else { return nil }
                bytes.append(byte)
                index += 3
            } else {
                guard ExtendedValue.isPlain(encoded[index]) else { return nil }
                bytes.append(encoded[index])
                index += 1
            }
        }
        if charset == "utf-8" {
            guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
            self.text = text
        } else {
            text = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        }
    }

    /// What may stand there without being encoded (attr-char).
    private static func isPlain(_ byte: UInt8) -> Bool {
        FieldReader.isTokenByte(byte) && byte != UInt8(ascii: "*") && byte != UInt8(ascii: "'")
    }
}

/// A name that a file may be given though a peer proposed it: one component, nothing hidden, nothing that deceives.
///
/// It stops a server from writing outside of the folder, over a dot file, or under a name that looks like another.
package struct SafeFilename: Hashable, Sendable {
    /// The most bytes a name may have: what Linux's file systems take.
    package static let byteLimit = 255

    /// The name.
    package let text: String

    /// What a proposed name comes to; `nil` when nothing is left of it.
    ///
    /// Slashes of both kinds separate components, of which the last counts, and so does the colon of a drive letter.
    /// Control characters and those that turn the direction of writing go; blanks and dots at the end, blanks at the
    /// beginning, and the dots that would hide the file, go too. A name that is too long loses its end, but not its
    /// extension. `.martlet-`, as in the names of what a download keeps beside its file, becomes `_martlet-`. Nothing is
    /// percent-decoded.
    /// - Parameter allowsDotFile: Whether the name may begin with a dot.
    package init?(_ proposed: String, allowsDotFile: Bool = false) {
        if SafeFilename.isPlain(proposed) {
            text = SafeFilename.unreserved(proposed)
            return
        }
        var scalars = proposed.unicodeScalars[...]
        if let separator = scalars.lastIndex(where: { $0 == "/" || $0 == "\\" }) {
            scalars = scalars[scalars.index(after: separator)...]
        }
        var kept = Array(scalars.filter { !SafeFilename.isUnwanted($0) })[...]
        SafeFilename.trimEnd(&kept)
        while let first = kept.first {
            if SafeFilename.isBlank(first) || (first == "." && !allowsDotFile) {
                kept = kept.dropFirst()
            } else if kept.count > 1, kept[kept.startIndex + 1] == ":", first.isASCII,
                first.properties.isAlphabetic
            {
                kept = kept.dropFirst(2)
            } else {
                break
            }
        }
        let text = SafeFilename.shortened(kept)
        guard !text.isEmpty, text != ".", text != ".." else { return nil }
        self.text = SafeFilename.unreserved(text)
    }

    /// A name that none of those can be that downloads keep beside their targets (`X.martlet-part`, `X.martlet-record`): what
    /// a peer puts there would be taken for what came of another file.
    private static func unreserved(_ name: String) -> String {
        guard name.utf8.count > 9, name.contains(".martlet-") else { return name }
        return name.split(separator: ".martlet-", omittingEmptySubsequences: false).joined(
            separator: "_martlet-")
    }

    /// Whether a name is of ASCII's letters, digits, `-`, `_` and dots within: then nothing is to be changed, as in most.
    private static func isPlain(_ name: String) -> Bool {
        let bytes = name.utf8
        guard let first = bytes.first, first != 0x2E, let last = bytes.last, last != 0x2E,
            bytes.count <= byteLimit
        else { return false }
        return bytes.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
            default: false
            }
        }
    }

    private static func trimEnd(_ scalars: inout ArraySlice<Unicode.Scalar>) {
        while let last = scalars.last, last == "." || isBlank(last) { scalars = scalars.dropLast() }
    }

    private static func isUnwanted(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7F..<0xA0: true
        // Marks, embeddings, overrides and isolates of direction; separators of lines and paragraphs; byte order marks.
        case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF, 0xFFF9...0xFFFB: true
        // Tags, which nobody sees.
        case 0xE0000...0xE007F: true
        default: false
        }
    }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }

    /// The name within the limit, its extension kept where it has a usual length; characters stay whole.
    private static func shortened(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        let whole = String(String.UnicodeScalarView(scalars))
        guard whole.utf8.count > byteLimit else { return whole }
        var suffix = ""
        if let dot = scalars.lastIndex(of: "."), dot > scalars.startIndex {
            let candidate = String(String.UnicodeScalarView(scalars[dot...]))
            if candidate.utf8.count <= 16 { suffix = candidate }
        }
        var stem = ""
        var byteCount = suffix.utf8.count
        for character in whole {
            byteCount += character.utf8.count
            guard byteCount <= byteLimit else { break }
            stem.append(character)
        }
        if stem.isEmpty {
            // A single character of more bytes than there may be.
            var view = String.UnicodeScalarView()
            byteCount = suffix.utf8.count
            for scalar in scalars {
                byteCount += UTF8.width(scalar)
                guard byteCount <= byteLimit else { break }
                view.append(scalar)
            }
            stem = String(view)
        }
        var cut = Array(stem.unicodeScalars)[...]
        if suffix.isEmpty { trimEnd(&cut) }
        return String(String.UnicodeScalarView(cut)) + suffix
    }
}

/// Which name a response proposes for the file it is saved in.
package enum SuggestedFilename {
    /// The name of `Content-Disposition`, else the last segment of the URL's path, percent-decoded; made safe either way.
    /// `nil` when neither has one.
    /// - Parameters:
    ///   - contentDisposition: The field's value; `nil` when there is none, or it is not to be heeded.
    ///   - url: Where the response came from.
    package static func of(contentDisposition: String?, url: HTTPURL) -> String? {
        if let contentDisposition, let name = ContentDisposition(contentDisposition)?.suggestedFilename {
            return name
        }
        let segment = url.path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last
        return segment.flatMap { SafeFilename(PercentEncoding.decoded(String(Substring($0))))?.text }
    }
}
