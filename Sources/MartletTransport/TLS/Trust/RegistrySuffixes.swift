import MartletURL
import CLinux
import Glibc

/// The suffixes below which registries let anybody register a name: the first section of Mozilla's Public Suffix List.
///
/// The section of private domains is left out: `*.github.io` belongs to one owner, who may well have a certificate for it
/// (CA/Browser Forum Baseline Requirements §3.2.2.6).
///
/// The text is kept as it is, 180 KiB, and searched for whole lines: a verification asks for three of them, which takes less
/// time than a signature, and reading the list takes no more than reading the file.
struct RegistrySuffixes: Sendable {
    /// Where Debian's package `publicsuffix` puts the list.
    static let paths = [
        "/usr/share/publicsuffix/public_suffix_list.dat", "/usr/share/publicsuffix/effective_tld_names.dat",
    ]
    /// The list of this machine, read by whoever asks first; without a suffix where none is installed.
    static let installed =
        paths.lazy.map { RegistrySuffixes(contentsOf: $0) }.first { !$0.isEmpty } ?? .init([])

    /// The longest file that is read: 16 MiB. It stops a mistaken file from filling the memory; the list has 0.3.
    private static let byteLimit = 16 << 20
    private static let beginning = Array("// ===BEGIN ICANN DOMAINS===".utf8)
    private static let ending = Array("// ===END ICANN DOMAINS===".utf8)

    /// The lines of the section, each between two line feeds.
    private let lines: [UInt8]

    /// The suffixes of a list's text; none where its first section is not marked.
    init(_ text: [UInt8]) {
        guard let begin = RegistrySuffixes.place(of: RegistrySuffixes.beginning, in: text[...]),
            let end = RegistrySuffixes.place(of: RegistrySuffixes.ending, in: text[begin...])
        else {
            lines = []
            return
        }
        lines = Array(text[begin..<end])
    }

    /// The suffixes of a file; none where it cannot be read.
    init(contentsOf path: String) { self.init(RegistrySuffixes.contents(of: path) ?? []) }

    /// Whether there is no list.
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

    /// A domain as the list writes it: its A-labels as U-labels.
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
        // A line feed in the name would reach over two lines; no host has one.
        !line.utf8.contains(10)
            && RegistrySuffixes.place(of: Array("\n\(line)\n".utf8), in: lines[...]) != nil
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

    private static func contents(of path: String) -> [UInt8]? {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 64 << 10)
        while text.count <= byteLimit {
            let count = unsafe read(descriptor, &buffer, buffer.count)
            if count == 0 { return text }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return nil }
            text += buffer[..<count]
        }
        return nil
    }
}

/// Says which domains are public suffixes, below which anybody can register: a wildcard directly under one would stand for
/// many people's hosts, and is not taken (RFC 9525 §6.3 leaves the limit to the verifier).
///
/// Two rules are equal only where they were made by the same call.
public final class PublicSuffixRule: Hashable, Sendable {
    private let isSuffix: @Sendable (String) -> Bool

    /// A rule by a closure, such as one that looks into a copy of the Public Suffix List.
    /// - Parameter isPublicSuffix: Gets a domain in lower-case ASCII, without a dot at either end; must not block.
    public init(_ isPublicSuffix: @escaping @Sendable (String) -> Bool) { isSuffix = isPublicSuffix }

    /// Every domain of a single label, such as `com`, and no other.
    public static let singleLabel = PublicSuffixRule { _ in false }

    /// The suffixes of registries, such as `co.uk`, in the Public Suffix List of the machine; the default. Where the list is
    /// not installed (Debian's package `publicsuffix`), the same as ``singleLabel``.
    ///
    /// The list is read once in a process, before the first TLS connection is opened.
    public static let system = PublicSuffixRule { RegistrySuffixes.installed.contains($0) }

    /// Reads what the rule needs, which blocks.
    func load() { if self == .system { _ = RegistrySuffixes.installed } }

    /// Whether a domain is a public suffix; one of a single label always is.
    public func isPublicSuffix(_ domain: String) -> Bool {
        !domain.utf8.contains(UInt8(ascii: ".")) || isSuffix(domain)
    }

    /// Whether they are the same object.
    public static func == (left: PublicSuffixRule, right: PublicSuffixRule) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
