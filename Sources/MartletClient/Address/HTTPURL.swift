/// An absolute `http` or `https` address, parsed once and strictly, so that every layer sees the same host.
///
/// Results follow the WHATWG URL Standard: hosts are lower-cased and IDNA-encoded, IPv4 addresses in any of
/// their spellings become dotted quads, dot segments are removed, the default port disappears, the path is
/// never empty. What the standard merely warns about but attackers use is an error here: control characters,
/// tabs, line breaks and backslashes anywhere, spaces at either end, anything but exactly `//` after the
/// scheme, user info that hides control characters, IPv6 zones.
///
/// Path, query and fragment are kept percent-encoded. What was validly encoded stays as it was written (`%2f`
/// stays `%2f`), characters that may not stand there are encoded, and a `%` without two hex digits becomes
/// `%25`.
///
/// Two addresses are equal when their components are. Parsing takes time linear in the input.
public struct HTTPURL: Hashable, Sendable {
    /// The most bytes an address may have, as given in UTF-8 and as serialised: 65,536 (64 KiB).
    ///
    /// It stops a peer's `Location` from making every later copy and log line expensive.
    public static let lengthLimit = 65_536

    /// What it is made of: one object, so that an address is handed around at the cost of one reference.
    let components: Components

    /// The scheme.
    public var scheme: Scheme { components.scheme }
    /// The host in ASCII and lower case: a name with A-labels, a dotted quad, or an IPv6 address without
    /// brackets in the form of RFC 5952. A trailing dot is kept, as in the WHATWG URL Standard.
    public var host: String { components.host }
    /// The port as written, 1–65535; nil when none was written or it is the scheme's default.
    public var explicitPort: Int? { components.explicitPort }
    /// The path, percent-encoded, beginning with `/`.
    public var path: String { components.path }
    /// The query, percent-encoded, without `?`; nil when there is none, which differs from an empty one.
    public var query: String? { components.query }
    /// The fragment, percent-encoded, without `#`; it never goes over the wire.
    public var fragment: String? { components.fragment }

    /// What kind of host ``host`` is.
    var hostKind: HostKind { components.hostKind }
    /// The user name and password in their percent-encoded form.
    var userInfo: UserInfo? { components.userInfo }

    /// The kinds of host.
    enum HostKind: Hashable, Sendable {
        case name
        case ipv4
        case ipv6
    }

    /// User name and password, percent-encoded; at least one of them is not empty.
    struct UserInfo: Hashable, Sendable {
        let user: String
        let password: String?
    }

    /// Parses an absolute address.
    ///
    /// - Parameters:
    ///   - string: The address, with scheme, at most ``lengthLimit`` bytes.
    ///   - pathAsIs: Whether `.` and `..` segments stay in the path instead of being removed; default no.
    /// - Throws: ``ParseError`` naming what was wrong and at which character.
    public init(_ string: String, pathAsIs: Bool = false) throws(ParseError) {
        do throws(URLFault) {
            var parser = try URLParser(string, pathAsIs: pathAsIs)
            self = try parser.absoluteURL()
        } catch {
            throw error.located(in: string)
        }
    }

    /// The address a reference means when it is found at this one (RFC 3986 §5.2, WHATWG URL Standard).
    ///
    /// Takes `//host/path`, `/path`, `path`, `?query`, `#fragment`, the empty string and absolute addresses.
    /// User info is kept unless the reference names a host; the fragment is the reference's alone.
    ///
    /// - Parameter reference: The reference, at most ``lengthLimit`` bytes.
    /// - Throws: ``ParseError`` with positions in `reference`; ``ParseError/Code/unsupportedScheme`` when it
    ///   names a scheme other than http and https.
    public func resolving(_ reference: String) throws(ParseError) -> HTTPURL {
        do throws(URLFault) {
            var parser = try URLParser(reference, pathAsIs: false)
            return try parser.reference(base: self)
        } catch {
            throw error.located(in: reference)
        }
    }

    /// An address of components that are already in their final form.
    init(
        scheme: Scheme, userInfo: UserInfo?, host: String, hostKind: HostKind, explicitPort: Int?,
        path: String,
        query: String?, fragment: String?
    ) {
        components = Components(
            scheme: scheme, userInfo: userInfo, host: host, hostKind: hostKind,
            explicitPort: explicitPort == scheme.defaultPort ? nil : explicitPort, path: path, query: query,
            fragment: fragment)
    }
}
