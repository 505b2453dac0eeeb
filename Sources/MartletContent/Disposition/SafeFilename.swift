package import MartletURL

/// A safe file name, made from a name that a peer proposed: one path component, neither hidden nor deceptive. It
/// prevents a server from writing outside of the directory, over a dot file, or under a name that looks like another.
package struct SafeFilename: Hashable, Sendable {
    /// The maximum size of a name in bytes: that of Linux's file systems.
    package static let byteLimit = 255
    /// The safe name, as text.
    package let text: String

    /// Makes a proposed name safe; `nil` if no characters are left.
    ///
    /// Slashes and backslashes separate components, and the last component is used. These parts of it are removed: a
    /// leading drive letter with its colon; control characters and those that change the direction of text; blanks and
    /// dots at both ends. A name above ``byteLimit`` is truncated before its extension. `.martlet-`, as in the names of
    /// a download's own files, becomes `_martlet-`. Nothing is percent-decoded.
    package init?(_ proposed: String) {
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
            if SafeFilename.isBlank(first) || first == "." {
                kept = kept.dropFirst()
            } else if kept.count > 1, kept[kept.startIndex + 1] == ":", first.isASCII, first.properties.isAlphabetic {
                kept = kept.dropFirst(2)
            } else {
                break
            }
        }
        let text = SafeFilename.shortened(kept)
        guard !text.isEmpty, text != ".", text != ".." else { return nil }
        self.text = SafeFilename.unreserved(text)
    }

    /// Returns a name that differs from those of a download's own files (`X.martlet-part`, `X.martlet-record`): a
    /// peer's file with such a name would be mistaken for the state of another download.
    private static func unreserved(_ name: String) -> String {
        guard name.utf8.count > 9, name.contains(".martlet-") else { return name }
        return name.split(separator: ".martlet-", omittingEmptySubsequences: false).joined(separator: "_martlet-")
    }

    /// Whether a name consists of ASCII letters, digits, `-`, `_` and inner dots. Most names do, and need no change.
    private static func isPlain(_ name: String) -> Bool {
        let bytes = name.utf8
        guard let first = bytes.first, first != 0x2E, let last = bytes.last, last != 0x2E, bytes.count <= byteLimit
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
        // Direction controls; line and paragraph separators; the byte order mark; interlinear annotations.
        case 0x061C, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF, 0xFFF9...0xFFFB: true
        // Tags, which are invisible.
        case 0xE0000...0xE007F: true
        default: false
        }
    }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool { scalar.properties.isWhitespace }

    /// Truncates a name to the limit between characters, and preserves an extension of at most 16 bytes.
    private static func shortened(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
        let whole = String(String.UnicodeScalarView(scalars))
        guard whole.utf8.count > byteLimit else { return whole }
        var suffix = ""
        if let dot = scalars.lastIndex(of: "."), dot > scalars.startIndex {
            let candidate = String(String.UnicodeScalarView(scalars[dot...]))
            if candidate.utf8.count <= 16 { suffix = candidate }
        }
        var room = byteLimit - suffix.utf8.count
        func fits(_ byteCount: Int) -> Bool {
            room -= byteCount
            return room >= 0
        }
        var stem = Array(whole.prefix { fits($0.utf8.count) }.unicodeScalars)[...]
        if stem.isEmpty {
            // The first character alone is above the limit, so it is truncated between its scalars.
            room = byteLimit - suffix.utf8.count
            stem = scalars.prefix { fits(UTF8.width($0)) }
        }
        if suffix.isEmpty { trimEnd(&stem) }
        return String(String.UnicodeScalarView(stem)) + suffix
    }
}

/// The proposed name of the file that a response is saved in.
package enum SuggestedFilename {
    /// Returns the name in `Content-Disposition`, else the last segment of the URL's path, percent-decoded. Both are
    /// made safe. `nil` if neither has a name.
    /// - Parameters:
    ///   - contentDisposition: The field's value; `nil` if the field is missing or should be ignored.
    ///   - url: The URL of the response.
    package static func of(contentDisposition: String?, url: HTTPURL) -> String? {
        if let name = contentDisposition.flatMap({ ContentDisposition($0) })?.suggestedFilename { return name }
        let segment = url.path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last
        return segment.flatMap { SafeFilename(PercentEncoding.decoded(String(Substring($0))))?.text }
    }
}
