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
    public var scheme: Scheme { components.parts.scheme }
    /// The host in ASCII and lower case: a name with A-labels, a dotted quad, or an IPv6 address without
    /// brackets in the form of RFC 5952. A trailing dot is kept, as in the WHATWG URL Standard.
    public var host: String { components.parts.host }
    /// The port as written, 1–65535; nil when none was written or it is the scheme's default.
    public var explicitPort: Int? { components.parts.explicitPort }
    /// The path, percent-encoded, beginning with `/`.
    public var path: String { components.parts.path }
    /// The query, percent-encoded, without `?`; nil when there is none, which differs from an empty one.
    public var query: String? { components.parts.query }
    /// The fragment, percent-encoded, without `#`; it never goes over the wire.
    public var fragment: String? { components.parts.fragment }

    /// What kind of host ``host`` is.
    package var hostKind: HostKind { components.parts.hostKind }
    /// The user name and password in their percent-encoded form.
    package var userInfo: UserInfo? { components.parts.userInfo }

    /// The kinds of host.
    package enum HostKind: Hashable, Sendable {
        case name
        case ipv4
        case ipv6
    }

    /// User name and password, percent-encoded; at least one of them is not empty.
    package struct UserInfo: Hashable, Sendable {
        package let user: String
        package let password: String?

        package init(user: String, password: String?) {
            self.user = user
            self.password = password
        }
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
    package init(
        scheme: Scheme, userInfo: UserInfo?, host: String, hostKind: HostKind, explicitPort: Int?,
        path: String, query: String?, fragment: String?
    ) {
        self.init(
            Parts(
                scheme: scheme, userInfo: userInfo, host: host, hostKind: hostKind,
                explicitPort: explicitPort == scheme.defaultPort ? nil : explicitPort, path: path,
                query: query, fragment: fragment))
    }

    init(_ parts: Parts) { components = Components(parts) }
}

extension HTTPURL {
    /// Scheme, host and port: what must be equal before a credential may follow a request (RFC 6454 §4).
    ///
    /// Hosts are compared in the form the parser gives them: lower case, A-labels, canonical addresses. A
    /// trailing dot is part of the host, as in the WHATWG URL Standard: `a.com.` and `a.com` are two origins.
    public struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The scheme.
        public let scheme: Scheme
        /// The host as in ``HTTPURL/host``: ASCII, IPv6 without brackets.
        public let host: String
        /// The port, 1–65535, the scheme's default filled in.
        public let port: Int

        /// The origin of an address.
        package init(scheme: Scheme, host: String, port: Int) {
            self.scheme = scheme
            self.host = host
            self.port = port
        }

        /// The origin as `https://host:port`, the port always present, an IPv6 address in brackets.
        public var description: String {
            // A colon appears in no host but an IPv6 address.
            host.utf8.contains(UInt8(ascii: ":"))
                ? "\(scheme)://[\(host)]:\(port)" : "\(scheme)://\(host):\(port)"
        }
    }
}

extension HTTPURL {
    /// The scheme of an address; Martlet speaks these two (RFC 9110 §4.2).
    public enum Scheme: String, Hashable, Sendable, Codable, CaseIterable, CustomStringConvertible {
        /// Plain HTTP over TCP (RFC 9110 §4.2.1).
        case http
        /// HTTP over TLS (RFC 9110 §4.2.2).
        case https

        /// The port meant when an address names none: 80 or 443.
        public var defaultPort: Int {
            switch self {
            case .http: 80
            case .https: 443
            }
        }

        /// The scheme in lower case, without the colon.
        public var description: String { rawValue }
    }
}

extension HTTPURL {
    /// Why a string is no address Martlet will use, and at which of its characters.
    ///
    /// The text never repeats user info, path or query: what was refused may hold a secret.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// What was wrong.
        public enum Code: String, Hashable, Sendable, CaseIterable {
            /// The string is empty.
            case empty
            /// Longer than ``HTTPURL/lengthLimit`` bytes, as given or once encoded.
            case tooLong
            /// No `http://` or `https://` in front.
            case missingScheme
            /// A scheme other than http and https.
            case unsupportedScheme
            /// The scheme is not followed by `//`.
            case missingAuthority
            /// A tab, line break or other control character, a backslash, or a space at either end.
            case forbiddenCharacter
            /// User info that is not UTF-8 or holds control characters once decoded.
            case invalidUserInfo
            /// No host between `//` or `@` and what follows.
            case emptyHost
            /// A character no host name may hold, written plainly or percent-encoded.
            case forbiddenHostCharacter
            /// A host name that breaks IDNA (UTS #46) or has an empty label.
            case invalidHostName
            /// A label above 63 characters or a name above 253 (RFC 1035 §2.3.4).
            case hostNameTooLong
            /// The last label is a number, but the whole is no IPv4 address.
            case invalidIPv4Address
            /// What stands in brackets is no IPv6 address.
            case invalidIPv6Address
            /// An IPv6 address with a zone (`%eth0`): it means something on one machine only.
            case zoneNotSupported
            /// A port that is not plain digits or not in 1–65535.
            case invalidPort
        }

        /// What was wrong.
        public let code: Code
        /// The character of the input it was found at, counted from 0 in Swift `Character`s; the number of
        /// characters when something is missing at the end.
        public let offset: Int
        /// What was wrong and what to do, as a sentence without a full stop and without the position.
        public let message: String

        package init(code: Code, offset: Int, message: String) {
            self.code = code
            self.offset = offset
            self.message = message
        }

        /// The message and the position, as in `port 65536 is out of range 1–65535 at character 15`.
        public var description: String { "\(message) at character \(offset)" }
    }
}
