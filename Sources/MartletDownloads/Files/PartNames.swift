import MartletContent
import MartletURL
package import MartletCore
import MartletHosts

/// The names beside a target under which a download keeps what has come of it.
package struct PartNames: Hashable, Sendable {
    /// The file's name when it is complete.
    package let target: String
    /// Its folder, with a slash at its end; empty for the process's own.
    package let folder: String

    /// Its folder, as it can be opened.
    package var folderPath: String { folder.isEmpty ? "." : folder }

    /// Behind the target's name: the bytes that have come.
    package static let partSuffix = ".martlet-part"
    /// Behind the target's name: what is known of them.
    package static let recordSuffix = ".martlet-record"

    /// The names that belong to a target.
    package init(target: String) {
        self.target = target
        let slash = target.utf8.lastIndex(of: UInt8(ascii: "/"))
        folder = slash.map { String(target[...$0]) } ?? ""
    }

    /// The target's name without its folder.
    package var name: String { String(target.utf8.dropFirst(folder.utf8.count)) ?? "" }

    /// The bytes that have come.
    package var part: String { folder + stem + PartNames.partSuffix }
    /// What is known of them.
    package var record: String { folder + stem + PartNames.recordSuffix }
    /// The next record, until it takes the place of the one before.
    package var nextRecord: String { record + "-" }
    /// The next bytes, where a download begins anew, until they take the place of those before.
    package var nextPart: String { part + "-" }

    /// The target's name, cut so that the suffixes fit behind it: names that are cut get a hash of the whole.
    private var stem: String {
        let name = name
        let room = SafeFilename.byteLimit - PartNames.recordSuffix.utf8.count - 1
        guard name.utf8.count > room else { return name }
        let suffix = PartNames.parted(name).suffix
        // FNV-1a, 64 bit: it tells names apart that begin alike.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in name.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
        var kept = ""
        for character in name {
            guard kept.utf8.count + character.utf8.count <= room - 17 - suffix.utf8.count else { break }
            kept.append(character)
        }
        return "\(kept)~\(String(hash, radix: 16))\(suffix)"
    }

    /// A name without its extension, and the extension with its dot; that is empty where the name has none of a usual length.
    private static func parted(_ name: String) -> (stem: Substring, suffix: String) {
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex, name[dot...].utf8.count <= 16 else {
            return (Substring(name), "")
        }
        return (name[..<dot], String(name[dot...]))
    }

    /// The names of a target that stands in for one that is taken: `name (1).txt`, `name (2).txt`.
    package func numbered(_ number: Int) -> PartNames {
        var (stem, suffix) = PartNames.parted(name)
        let mark = " (\(number))"
        while stem.utf8.count + mark.utf8.count + suffix.utf8.count > SafeFilename.byteLimit, !stem.isEmpty {
            stem = stem.dropLast()
        }
        return PartNames(target: folder + stem + mark + suffix)
    }

    /// The names that a complete file may get, in the order in which they are tried.
    package func candidates(_ collision: DownloadOptions.Collision) -> some Sequence<String> {
        let (first, last) = (self, collision == .rename ? 999 : 0)
        return (0...last).lazy.map { $0 == 0 ? first.target : first.numbered($0).target }
    }

    /// The name of a file by what its server, or else its URL, proposes: one component that is neither hidden nor looks
    /// like an option; `download` where nothing is left. The program's `get -OJ` and `download` both use it.
    /// - Parameter disposition: `Content-Disposition`. Where it is not written as RFC 6266 has it, it is read as curl and
    ///   browsers read it: without a type, or with blanks in a name that is not quoted.
    package static func proposed(disposition: String?, url: HTTPURL) -> String {
        let given = disposition.flatMap { text in
            ContentDisposition(text)?.suggestedFilename ?? PartNames.loosely(text)
        }
        guard let name = given ?? SuggestedFilename.of(contentDisposition: nil, url: url) else {
            return "download"
        }
        let bare = name.drop { $0 == "-" || $0 == "." || $0 == " " }
        return SafeFilename(String(bare))?.text ?? "download"
    }

    /// The first `filename` of a field that is malformed, made safe.
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
            // A semicolon in quotes parts nothing.
            var isQuoted = false
            rest = rest.drop { character in
                if character == "\"" { isQuoted.toggle() }
                return character != ";" || isQuoted
            }
        }
        return nil
    }
}
