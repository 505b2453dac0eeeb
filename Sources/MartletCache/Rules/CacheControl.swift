package import MartletWire

/// The directives of the `Cache-Control` fields of a message (RFC 9111 §5.2, RFC 5861, RFC 8246).
///
/// Names are case-insensitive, arguments may be quoted, and unknown directives are ignored. Of repeated or
/// contradictory directives the strictest applies (RFC 9111 §4.2.1). A malformed number counts as the strictest value.
package struct CacheControl: Equatable, Sendable {
    /// `max-age`: seconds, 0…2^31; 0 if malformed.
    package private(set) var maxAge: Int64?
    /// `s-maxage`: seconds, 0…2^31. It sets no lifetime in a private cache, but permits sharing (RFC 9111 §3.5).
    package private(set) var sharedMaxAge: Int64?
    /// `max-stale` of a request: seconds, 0…2^31; 0 if malformed, `.max` (any staleness) without an argument.
    package private(set) var maxStale: Int64?
    /// `min-fresh` of a request: seconds, 0…2^31; 2^31 if malformed.
    package private(set) var minFresh: Int64?
    /// `stale-while-revalidate` of a response: seconds, 0…2^31; 0 if malformed (RFC 5861 §3).
    package private(set) var staleWhileRevalidate: Int64?
    /// `stale-if-error` of a request or response: seconds, 0…2^31; 0 if malformed (RFC 5861 §4).
    package private(set) var staleIfError: Int64?
    package private(set) var noCache: FieldScope?
    package private(set) var isPrivate: FieldScope?
    package private(set) var isNoStore = false
    package private(set) var isPublic = false
    package private(set) var mustRevalidate = false
    package private(set) var proxyRevalidate = false
    /// Whether `must-understand` is set (RFC 9111 §5.2.2.3).
    package private(set) var mustUnderstand = false
    /// Whether `immutable` is set (RFC 8246).
    package private(set) var isImmutable = false
    package private(set) var isOnlyIfCached = false
    /// Whether a quoted argument is unterminated. Each part between its commas is then a directive, and the response is
    /// stale.
    package private(set) var isMalformed = false

    package init() {}

    /// Parses the directives of a response.
    package init(response fields: FieldBlock) { for value in fields.rawValues(of: "Cache-Control") { add(value) } }

    /// Parses the directives of a request. `Pragma: no-cache` counts only without `Cache-Control` (RFC 9111 §5.4).
    package init(request fields: FieldBlock) {
        self.init(response: fields)
        let isPragma = !fields.contains("Cache-Control") && fields.contains("Pragma", token: "no-cache")
        if isPragma || noCache != nil { noCache = .response }
    }

    /// Whether the whole response must be validated before each use.
    package var isNoCache: Bool { noCache == .response }

    /// The fields that must not be served without validation, in lower case.
    package var fieldsToValidate: [String] { if case .fields(let names) = noCache { names } else { [] } }

    /// Whether stale responses are forbidden: `must-revalidate`, `proxy-revalidate`, `no-cache`, or a malformed field.
    package var forbidsStale: Bool { mustRevalidate || proxyRevalidate || isNoCache || isMalformed }

    /// Whether other users may receive a response to a request with credentials (RFC 9111 §3.5).
    var allowsSharing: Bool { !isMalformed && (isPublic || mustRevalidate || sharedMaxAge != nil) }

    private mutating func add(_ value: ArraySlice<UInt8>) {
        for element in ElementList(value) {
            guard CacheDirective.hasOpenQuote(element) else {
                add(CacheDirective(element))
                continue
            }
            // Only the last element of a field can have an open quote.
            isMalformed = true
            for part in element.split(separator: UInt8(ascii: ",")) { add(CacheDirective(ByteClass.trimmed(part))) }
        }
    }

    private mutating func add(_ directive: CacheDirective) {
        func lower(_ old: Int64?, _ new: Int64?) -> Int64 { min(old ?? .max, new ?? 0) }
        let seconds = directive.seconds
        switch directive.bareName {
        case "max-age": maxAge = lower(maxAge, seconds)
        case "s-maxage": sharedMaxAge = lower(sharedMaxAge, seconds)
        case "stale-while-revalidate": staleWhileRevalidate = lower(staleWhileRevalidate, seconds)
        case "stale-if-error": staleIfError = lower(staleIfError, seconds)
        case "min-fresh": minFresh = max(minFresh ?? 0, seconds ?? DeltaSeconds.limit)
        case "max-stale": maxStale = lower(maxStale, directive.argument == nil ? .max : seconds)
        case "no-cache": noCache = directive.scope.union(noCache)
        case "private": isPrivate = directive.scope.union(isPrivate)
        case "no-store": isNoStore = true
        case "public": isPublic = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": mustUnderstand = true
        case "immutable": isImmutable = true
        case "only-if-cached": isOnlyIfCached = true
        default: break
        }
    }
}

/// The scope of a `no-cache` or `private` directive (RFC 9111 §5.2.2.4, §5.2.2.7).
package enum FieldScope: Equatable, Sendable {
    case response
    /// Only these fields of the response: names in lower case, sorted, without duplicates, never empty.
    case fields([String])

    /// Returns the union of two scopes: the whole response if either is.
    func union(_ other: FieldScope?) -> FieldScope {
        guard let other else { return self }
        guard case .fields(let mine) = self, case .fields(let others) = other else { return .response }
        return .fields(Set(mine).union(others).sorted())
    }
}

/// A directive of a `Cache-Control` field: a name with an optional argument after `=` (RFC 9111 §5.2).
struct CacheDirective {
    private static let quote = UInt8(ascii: "\"")

    private let name: ArraySlice<UInt8>
    /// The text after `=`, with its quotes; `nil` without `=`.
    let argument: ArraySlice<UInt8>?

    /// Splits a member of the list into name and argument.
    init(_ element: ArraySlice<UInt8>) {
        let equals = element.firstIndex(of: UInt8(ascii: "="))
        name = element[..<(equals ?? element.endIndex)]
        argument = equals.map { element[($0 + 1)...] }
    }

    /// The name in lower case, empty if no known name has its length. Invalid blanks before `=` are ignored.
    var bareName: String {
        let bare = ByteClass.trimmed(name)
        // The lengths of the shortest and the longest name: `public` and `stale-while-revalidate`.
        return (6...22).contains(bare.count) ? bare.lowercasedText : ""
    }

    /// The argument in seconds; `nil` if it is missing, malformed, or separated from its name by blanks.
    var seconds: Int64? {
        guard let argument, name.last.map(ByteClass.isBlank) == false else { return nil }
        return DeltaSeconds.value(of: unquoted(argument))
    }

    /// The scope: the fields that the argument names, or the whole response if it names none, or if a name is invalid.
    var scope: FieldScope {
        guard let argument else { return .response }
        var names: Set<String> = []
        for member in ElementList(unquoted(argument)) {
            guard member.allSatisfy(ByteClass.isToken) else { return .response }
            names.insert(member.lowercasedText)
        }
        return names.isEmpty ? .response : .fields(names.sorted())
    }

    /// Whether an element contains an unterminated quoted string.
    static func hasOpenQuote(_ element: ArraySlice<UInt8>) -> Bool {
        var rest = element
        var isQuoted = false
        while let byte = rest.popFirst() {
            if byte == quote { isQuoted.toggle() }
            if byte == UInt8(ascii: "\\"), isQuoted { _ = rest.popFirst() }
        }
        return isQuoted
    }

    /// Returns the content of a quoted string, without its escapes; any other text unchanged.
    private func unquoted(_ argument: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        let quote = CacheDirective.quote
        guard argument.count >= 2, argument.first == quote, argument.last == quote else { return argument }
        var content: [UInt8] = []
        var rest = argument.dropFirst().dropLast()
        while let byte = rest.popFirst() { content.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte) }
        return content[...]
    }
}

/// The seconds in `Cache-Control` and `Age` (RFC 9111 §1.2.2).
enum DeltaSeconds {
    /// The maximum, 2^31. Larger numbers, with any number of digits, are clamped to it.
    static let limit: Int64 = 1 << 31

    /// Returns a number of seconds, clamped to 0…2^31.
    static func clamped(_ seconds: Int64) -> Int64 { min(max(0, seconds), limit) }

    /// Returns the value of decimal digits, 0…2^31; `nil` for other text, such as a sign, or no text.
    static func value(of digits: ArraySlice<UInt8>) -> Int64? {
        switch DecimalNumber(digits) {
        case .value(let value): Int64(min(value, UInt64(limit)))
        case .overflow: limit
        case .invalid: nil
        }
    }
}

extension Sequence<UInt8> {
    /// The bytes as text, ASCII letters in lower case.
    var lowercasedText: String { String(decoding: map(ByteClass.lowercased), as: UTF8.self) }
}
