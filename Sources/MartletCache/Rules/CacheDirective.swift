import MartletWire

/// One directive of a `Cache-Control` field: a name, and perhaps `=` and an argument (RFC 9111 §5.2).
struct CacheDirective {
    /// The directives that are acted on.
    enum Name: String {
        case maxAge = "max-age"
        case sharedMaxAge = "s-maxage"
        case maxStale = "max-stale"
        case minFresh = "min-fresh"
        case staleWhileRevalidate = "stale-while-revalidate"
        case staleIfError = "stale-if-error"
        case noCache = "no-cache"
        case isPrivate = "private"
        case noStore = "no-store"
        case isPublic = "public"
        case mustRevalidate = "must-revalidate"
        case proxyRevalidate = "proxy-revalidate"
        case mustUnderstand = "must-understand"
        case immutable = "immutable"
        case noTransform = "no-transform"
        case onlyIfCached = "only-if-cached"
    }

    /// The length of the longest name: nothing longer is looked up.
    private static let longestName = 22

    private let element: ArraySlice<UInt8>
    private let name: ArraySlice<UInt8>
    /// What stands behind `=`, with its quotes; nil without `=`.
    let argument: ArraySlice<UInt8>?

    /// Takes a member of the list apart.
    init(_ element: ArraySlice<UInt8>) {
        self.element = element
        guard let equals = element.firstIndex(of: UInt8(ascii: "=")) else {
            name = element
            argument = nil
            return
        }
        name = element[..<equals]
        argument = element[(equals + 1)...]
    }

    /// The name, if it is one of those acted on. Blanks before `=`, which the grammar has no place for, are overlooked:
    /// `no-store = x` is not the weaker for them.
    var knownName: Name? {
        let bare = ByteClass.trimmed(name)
        guard (6...CacheDirective.longestName).contains(bare.count) else { return nil }
        return Name(rawValue: String(decoding: bare.map(ByteClass.lowercased), as: UTF8.self))
    }

    /// The argument as seconds; nil where it is missing, malformed, or apart from its name.
    var seconds: Int64? {
        guard let argument, name.last.map(ByteClass.isBlank) == false else { return nil }
        return DeltaSeconds.value(of: unquoted(argument))
    }

    /// The argument as a list of field names; the whole response where it names none, or something that is no name.
    var scope: FieldScope {
        guard let argument else { return .response }
        var names: Set<String> = []
        for member in ElementList(unquoted(argument)) {
            guard member.allSatisfy(ByteClass.isToken) else { return .response }
            names.insert(String(decoding: member.map(ByteClass.lowercased), as: UTF8.self))
        }
        return names.isEmpty ? .response : .fields(names.sorted())
    }

    /// Whether a quoted string in it has no end.
    var hasOpenQuote: Bool {
        guard var bytes = element.firstIndex(of: CacheDirective.quote).map({ element[$0...] }) else {
            return false
        }
        var isQuoted = false
        while let byte = bytes.popFirst() {
            if byte == CacheDirective.quote {
                isQuoted.toggle()
            } else if byte == UInt8(ascii: "\\"), isQuoted {
                _ = bytes.popFirst()
            }
        }
        return isQuoted
    }

    private static let quote = UInt8(ascii: "\"")

    /// The content of a quoted string, without its escapes; anything else as it is.
    private func unquoted(_ argument: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard argument.count >= 2, argument.first == CacheDirective.quote,
            argument.last == CacheDirective.quote
        else { return argument }
        var content: [UInt8] = []
        var rest = argument.dropFirst().dropLast()
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\\"), let escaped = rest.popFirst() {
                content.append(escaped)
            } else {
                content.append(byte)
            }
        }
        return content[...]
    }
}
