/// A user name and a password for a proxy, which are told to that proxy and to nobody else.
///
/// Neither is part of any description, mirror or log line.
public struct ProxyCredentials: Hashable, Sendable {
    /// The user name.
    public var user: String

    /// The password; may be empty.
    public var password: String

    /// Whether an HTTP proxy is told them before it asks, by `Basic` (RFC 7617); `true` by default, as curl has it.
    ///
    /// It spares a round trip. A proxy that wants `Digest` then sees the password all the same, which it would not
    /// where this is `false`. SOCKS proxies are always asked first.
    public var isShownUnasked: Bool

    /// Whether an HTTP proxy is told them by `Digest` (RFC 7616) alone, when it asks, so that it never sees the password;
    /// `false` by default. A proxy that wants `Basic` then goes without, and refuses.
    ///
    /// SOCKS proxies know one way, in which the password is sent as it is; this changes nothing about them.
    public var isForDigestAlone: Bool

    /// Credentials.
    public init(
        user: String, password: String, isShownUnasked: Bool = true, isForDigestAlone: Bool = false
    ) {
        self.user = user
        self.password = password
        self.isShownUnasked = isShownUnasked
        self.isForDigestAlone = isForDigestAlone
    }
}

extension ProxyCredentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Says that they are credentials, and no more.
    public var description: String { "credentials for a proxy" }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// Shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
