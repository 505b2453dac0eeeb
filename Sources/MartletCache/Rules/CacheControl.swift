package import MartletWire

/// The directives of the `Cache-Control` fields of a message (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Names ignore case and arguments may be quoted. Directives that are not known are skipped. Where directives repeat or
/// contradict each other, the strictest counts (RFC 9111 §4.2.1); a number that is none counts as the strictest there
/// is, so that what is doubtful is validated.
package struct CacheControl: Equatable, Sendable {
    /// `max-age`: seconds, 0…2^31; 0 where it is malformed.
    package private(set) var maxAge: Int64?
    /// `s-maxage`: seconds, 0…2^31. A private cache takes no lifetime from it; it lets responses to requests with
    /// `Authorization` be shared (RFC 9111 §3.5).
    package private(set) var sharedMaxAge: Int64?
    /// `max-stale` of a request; nil where it is malformed.
    package private(set) var maxStale: StaleTolerance?
    /// `min-fresh` of a request: seconds, 0…2^31; 2^31 where it is malformed.
    package private(set) var minFresh: Int64?
    /// `stale-while-revalidate` of a response: seconds, 0…2^31; 0 where it is malformed (RFC 5861 §3).
    package private(set) var staleWhileRevalidate: Int64?
    /// `stale-if-error` of either: seconds, 0…2^31; 0 where it is malformed (RFC 5861 §4).
    package private(set) var staleIfError: Int64?
    /// `no-cache`, and what it is about.
    package private(set) var noCache: FieldScope?
    /// `private`, and what it is about.
    package private(set) var isPrivate: FieldScope?
    /// `no-store`.
    package private(set) var isNoStore = false
    /// `public`.
    package private(set) var isPublic = false
    /// `must-revalidate`.
    package private(set) var mustRevalidate = false
    /// `proxy-revalidate`.
    package private(set) var proxyRevalidate = false
    /// `must-understand` (RFC 9111 §5.2.2.3).
    package private(set) var mustUnderstand = false
    /// `immutable` (RFC 8246).
    package private(set) var isImmutable = false
    /// `no-transform`.
    package private(set) var isNoTransform = false
    /// `only-if-cached` of a request.
    package private(set) var isOnlyIfCached = false
    /// Whether a quoted argument has no end, so that it cannot be known what the field says. What stands between its
    /// commas counts, too, and the response counts as stale.
    package private(set) var isMalformed = false

    /// No directives.
    package init() {}

    /// The directives of a response.
    package init(response fields: FieldBlock) {
        for value in fields.rawValues(of: "Cache-Control") { add(value) }
    }

    /// The directives of a request. Without any `Cache-Control` field, `Pragma: no-cache` means `no-cache` (RFC 9111
    /// §5.4).
    package init(request fields: FieldBlock) {
        let values = fields.rawValues(of: "Cache-Control")
        for value in values { add(value) }
        if noCache != nil { noCache = .response }
        if values.isEmpty, fields.contains("Pragma", token: "no-cache") { noCache = .response }
    }

    /// Whether the whole response is to be validated before each use.
    package var isNoCache: Bool { noCache == .response }

    /// The fields that must not be served without validation, in lower case.
    package var fieldsToValidate: [String] { if case .fields(let names) = noCache { names } else { [] } }

    /// Whether a stale response must not be used: `must-revalidate`, `proxy-revalidate`, `no-cache`, and a field that
    /// cannot be read.
    package var forbidsStale: Bool { mustRevalidate || proxyRevalidate || isNoCache || isMalformed }

    // MARK: Reading

    private mutating func add(_ value: ArraySlice<UInt8>) {
        for element in ElementList(value) {
            let directive = CacheDirective(element)
            if directive.hasOpenQuote {
                // Only the last element of a field can be one: this is done once.
                isMalformed = true
                for part in element.split(separator: UInt8(ascii: ",")) {
                    add(CacheDirective(ByteClass.trimmed(part)))
                }
            } else {
                add(directive)
            }
        }
    }

    private mutating func add(_ directive: CacheDirective) {
        switch directive.bareName {
        case "max-age": maxAge = lower(maxAge, directive.seconds ?? 0)
        case "s-maxage": sharedMaxAge = lower(sharedMaxAge, directive.seconds ?? 0)
        case "stale-while-revalidate":
            staleWhileRevalidate = lower(staleWhileRevalidate, directive.seconds ?? 0)
        case "stale-if-error": staleIfError = lower(staleIfError, directive.seconds ?? 0)
        case "min-fresh": minFresh = max(minFresh ?? 0, directive.seconds ?? DeltaSeconds.limit)
        case "max-stale":
            let tolerance = directive.argument == nil ? StaleTolerance.any : .seconds(directive.seconds ?? 0)
            maxStale = tolerance.stricter(maxStale)
        case "no-cache": noCache = directive.scope.union(noCache)
        case "private": isPrivate = directive.scope.union(isPrivate)
        case "no-store": isNoStore = true
        case "public": isPublic = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = true
        case "immutable": isImmutable = true
        case "no-transform": isNoTransform = true
        case "only-if-cached": isOnlyIfCached = true
        default: break
        }
    }

    private func lower(_ old: Int64?, _ new: Int64) -> Int64 { min(old ?? new, new) }
}

/// One directive of a `Cache-Control` field: a name, and perhaps `=` and an argument (RFC 9111 §5.2).
struct CacheDirective {
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

    /// The name in lower case; empty where it is longer or shorter than those that are acted on. Blanks before `=`, which the
    /// grammar has no place for, are overlooked: `no-store = x` is not the weaker for them.
    var bareName: String {
        let bare = ByteClass.trimmed(name)
        guard (6...CacheDirective.longestName).contains(bare.count) else { return "" }
        return String(decoding: bare.map(ByteClass.lowercased), as: UTF8.self)
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

/// Seconds as `Cache-Control` and `Age` write them (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// The most seconds that are told apart, 2^31: larger numbers, however long, count as this.
    static let limit: Int64 = 1 << 31

    /// The seconds that digits mean, 0…2^31, or nil where they are anything but digits: no sign, point or blank.
    static func value(of digits: ArraySlice<UInt8>) -> Int64? {
        switch DecimalNumber(digits) {
        case .value(let value): value > UInt64(limit) ? limit : Int64(value)
        case .overflow: limit
        case .invalid: nil
        }
    }
}
