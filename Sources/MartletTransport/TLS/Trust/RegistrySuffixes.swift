import CMartletLinux
import Glibc
import MartletURL

/// The suffixes below which the public can register names: the first section of Mozilla's Public Suffix List.
///
/// The section of private domains is omitted: `*.github.io` belongs to one owner, who may have a certificate for it
/// (CA/Browser Forum Baseline Requirements §3.2.2.6).
///
/// The text (180 KiB) is stored unparsed, and searched for whole lines. A look-up needs three searches, which take less
/// time than verifying a signature.
struct RegistrySuffixes: Sendable {
    /// The files of Debian's package `publicsuffix`.
    static let paths = [
        "/usr/share/publicsuffix/public_suffix_list.dat", "/usr/share/publicsuffix/effective_tld_names.dat",
    ]
    /// The list of this machine, read on first use; empty if none is installed.
    static let installed = paths.lazy.map { RegistrySuffixes(contentsOf: $0) }.first { !$0.isEmpty } ?? .init([])

    private static let beginning = Array("// ===BEGIN ICANN DOMAINS===".utf8)
    private static let ending = Array("// ===END ICANN DOMAINS===".utf8)
    /// The lines of the section, each between two line feeds.
    private let lines: [UInt8]

    /// The suffixes of a list's text; empty if its first section is not marked.
    init(_ text: [UInt8]) {
        guard let begin = RegistrySuffixes.place(of: RegistrySuffixes.beginning, in: text[...]),
            let end = RegistrySuffixes.place(of: RegistrySuffixes.ending, in: text[begin...])
        else {
            lines = []
            return
        }
        lines = Array(text[begin..<end])
    }

    /// The suffixes of a file; empty if it cannot be read, or has more than 16 MiB. The list has about 0.3 MiB.
    init(contentsOf path: String) { self.init((try? SystemFile.contents(of: path, limit: 16 << 20)) ?? []) }

    var isEmpty: Bool { lines.isEmpty }

    /// Whether a domain is a suffix.
    /// - Parameter domain: In lower-case ASCII, without a dot at either end.
    func contains(_ domain: String) -> Bool {
        guard !isEmpty else { return false }
        let name = RegistrySuffixes.unicode(domain)
        if hasLine("!\(name)") { return false }
        if hasLine(name) { return true }
        guard let dot = name.utf8.firstIndex(of: UInt8(ascii: ".")) else { return false }
        return hasLine("*\(name[dot...])")
    }

    /// A domain in the form of the list: A-labels are converted to U-labels.
    private static func unicode(_ domain: String) -> String {
        guard domain.contains("xn--") else { return domain }
        return domain.split(separator: ".", omittingEmptySubsequences: false).map { label in
            guard label.hasPrefix("xn--"), let scalars = Punycode.decoded(label.utf8.dropFirst(4)) else {
                return String(label)
            }
            var text = String.UnicodeScalarView()
            text.append(contentsOf: scalars)
            return String(text)
        }.joined(separator: ".")
    }

    private func hasLine(_ line: String) -> Bool {
        // A line feed in the name would match across two lines; no host has one.
        !line.utf8.contains(10) && RegistrySuffixes.place(of: Array("\n\(line)\n".utf8), in: lines[...]) != nil
    }

    private static func place(of part: [UInt8], in text: ArraySlice<UInt8>) -> Int? {
        let offset = unsafe text.withUnsafeBytes { text -> Int? in
            unsafe part.withUnsafeBytes { part -> Int? in
                guard let base = text.baseAddress, let wanted = part.baseAddress,
                    let found = unsafe memmem(base, text.count, wanted, part.count)
                else { return nil }
                return unsafe UnsafeRawPointer(found) - base
            }
        }
        return offset.map { text.startIndex + $0 }
    }
}
