/// Whether redirects are followed, and what goes along (RFC 9110 §15.4).
///
/// Followed are 301, 302, 303, 307 and 308 with a `Location`. 303 turns every method but HEAD into GET, 301 and 302 turn
/// POST into GET; a body that is sent again must be replayable, else the redirect itself is the answer. 300, 304 and 305 are
/// answers. Only http and https are followed.
///
/// When the scheme, the host or the port changes, `Authorization`, `Cookie`, `Proxy-Authorization`, `Host` and the fields of
/// ``secretFields`` are left behind, those of the session's defaults too, and do not come back when the chain does. A name
/// and a password in a `Location` are never used.
public struct RedirectPolicy: Hashable, Sendable {
    /// Whether they are followed at all.
    public var isFollowing: Bool
    /// How many are followed in one call before it fails with ``HTTPError/Code/tooManyRedirects``; 20 by default.
    public var limit: Int
    /// Whether one from https to http is followed; `false` by default, and the call fails.
    public var allowsDowngrade = false
    /// The schemes that a redirect may lead to, as curl's `--proto-redir`; http and https by default. One to another fails
    /// the call.
    public var schemes = Set(HTTPURL.Scheme.allCases)
    /// Statuses among 301, 302 and 303 after which POST stays POST, as curl's `--post301`; none by default.
    public var statusesThatKeepMethod: Set<Int> = []
    /// Fields besides the usual ones that must not reach another origin, such as `X-Api-Key`.
    public var secretFields: Set<HTTPField.Name> = []
    /// Whether other origins get everything that the first one gets, as curl's `--location-trusted`; `false` by default.
    public var trustsOtherOrigins = false

    /// They are followed, so many in one call at most.
    public static func follow(limit: Int = 20) -> RedirectPolicy {
        RedirectPolicy(isFollowing: true, limit: max(0, limit))
    }

    /// They are answers like any other.
    public static let refuse = RedirectPolicy(isFollowing: false, limit: 0)

    private init(isFollowing: Bool, limit: Int) {
        self.isFollowing = isFollowing
        self.limit = limit
    }

    /// The fields that stay at their origin.
    package var fieldsOfOrigin: Set<HTTPField.Name> {
        secretFields.union([.authorization, .cookie, .proxyAuthorization, .hostField])
    }

    /// The session's defaults that are not sent elsewhere. `Host` is never one of those: each URL has its own.
    package var defaultsOfOrigin: Set<HTTPField.Name> { fieldsOfOrigin.subtracting([.hostField]) }
}
