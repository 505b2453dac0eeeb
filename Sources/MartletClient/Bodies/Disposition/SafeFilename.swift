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
