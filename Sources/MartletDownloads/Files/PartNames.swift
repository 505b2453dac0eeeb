package import MartletCore

/// The names of the files next to a target that contain the received bytes of a download.
package struct PartNames: Hashable, Sendable {
    /// The path of the complete file.
    package let target: String
    /// The directory, with a slash at its end; empty for the working directory.
    package let directory: String
    /// The start of the paths of all other files.
    private let base: String

    /// The path of the directory, as it can be opened.
    package var directoryPath: String { directory.isEmpty ? "." : directory }

    /// The suffix of the file of the received bytes.
    package static let partSuffix = ".martlet-part"
    package static let recordSuffix = ".martlet-record"

    package init(target: String) {
        self.target = target
        let slash = target.utf8.lastIndex(of: UInt8(ascii: "/"))
        directory = slash.map { String(target[...$0]) } ?? ""
        base = directory + PartNames.stem(of: PartNames.name(of: target, directory))
    }

    /// The name of the target without its directory.
    package var name: String { PartNames.name(of: target, directory) }

    private static func name(of target: String, _ directory: String) -> String {
        String(target.utf8.dropFirst(directory.utf8.count)) ?? ""
    }

    /// The path of the file of the received bytes.
    package var part: String { base + PartNames.partSuffix }
    package var record: String { base + PartNames.recordSuffix }
    /// The next record, until it replaces the previous one.
    package var nextRecord: String { record + "-" }
    /// The bytes of a restarted download, until they replace the previous ones.
    package var nextPart: String { part + "-" }
    /// The files that are useless without the part.
    package var companions: [String] { [record, nextRecord, nextPart] }

    /// Returns a name truncated so that the suffixes fit. A truncated name has a hash of the whole name.
    private static func stem(of name: String) -> String {
        let room = SafeFilename.byteLimit - PartNames.recordSuffix.utf8.count - 1
        guard name.utf8.count > room else { return name }
        let suffix = PartNames.parted(name).suffix
        // FNV-1a, 64 bit: distinguishes names with the same start.
        let hash = name.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
        var kept = name[...]
        while kept.utf8.count > room - 17 - suffix.utf8.count { kept = kept.dropLast() }
        return "\(kept)~\(String(hash, radix: 16))\(suffix)"
    }

    /// Splits a name before the dot of its extension. The extension is empty if the name has none of at most 16 bytes.
    private static func parted(_ name: String) -> (stem: Substring, suffix: String) {
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex, name[dot...].utf8.count <= 16 else {
            return (Substring(name), "")
        }
        return (name[..<dot], String(name[dot...]))
    }

    /// Returns the names for a numbered target, used if the target exists: `name (1).txt`, `name (2).txt`.
    package func numbered(_ number: Int) -> PartNames {
        var (stem, suffix) = PartNames.parted(name)
        let mark = " (\(number))"
        while stem.utf8.count + mark.utf8.count + suffix.utf8.count > SafeFilename.byteLimit, !stem.isEmpty {
            stem = stem.dropLast()
        }
        return PartNames(target: directory + stem + mark + suffix)
    }

    /// Returns the paths that a complete file may get, in the order of the attempts.
    package func candidates(_ collision: DownloadOptions.Collision) -> some Sequence<String> {
        let (first, last) = (self, collision == .rename ? 999 : 0)
        return (0...last).lazy.map { $0 == 0 ? first.target : first.numbered($0).target }
    }

    /// Returns the file name that the server, or else the URL, proposes: one component that is not hidden and does not
    /// look like an option; `download` if nothing is left. Also used by `martlet get -OJ`.
    /// - Parameter disposition: `Content-Disposition`; an invalid one is parsed as curl and browsers do.
    package static func proposed(disposition: String?, url: HTTPURL) -> String {
        let given = disposition.flatMap { text in ContentDisposition(text)?.suggestedFilename ?? PartNames.loosely(text)
        }
        guard let name = given ?? SuggestedFilename.of(contentDisposition: nil, url: url) else { return "download" }
        let bare = name.drop { $0 == "-" || $0 == "." || $0 == " " }
        return SafeFilename(String(bare))?.text ?? "download"
    }

    /// Returns the first `filename` of a malformed field, sanitized.
    private static func loosely(_ disposition: String) -> String? {
        func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }
        var rest = Substring(disposition)
        while !rest.isEmpty {
            rest = rest.drop { isBlank($0) || $0 == ";" }
            let value = rest.dropFirst(8).drop(while: isBlank)
            if rest.prefix(8).lowercased() == "filename", value.first == "=" {
                let name = value.dropFirst().drop(while: isBlank)
                let isQuoted = name.first == "\""
                let text = isQuoted ? name.dropFirst().prefix { $0 != "\"" } : name.prefix { $0 != ";" }
                return SafeFilename(String(text))?.text
            }
            // A semicolon in quotes is not a separator.
            var isQuoted = false
            rest = rest.drop { character in
                if character == "\"" { isQuoted.toggle() }
                return character != ";" || isQuoted
            }
        }
        return nil
    }
}
