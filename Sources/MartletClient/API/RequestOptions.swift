/// The versions of HTTP that Martlet speaks.
public enum HTTPVersion: String, Hashable, Sendable, Codable {
    /// HTTP/1.0 (RFC 1945): for servers that know nothing newer.
    case http10 = "1.0"
    /// HTTP/1.1 (RFC 9112).
    case http11 = "1.1"
}

/// What one call does otherwise than its session.
public struct RequestOptions: Sendable {
    /// The clocks; `nil` for the session's.
    public var timeouts: Timeouts?

    /// Who goes first when requests wait for a connection; `nil` for the session's.
    public var priority: RequestPriority?

    /// The largest body that is collected in memory; `nil` for the session's. Streams have no limit unless this is set.
    public var bodyLimit: ByteCount?

    /// Whether content codings are asked for and undone; `nil` for the session's word.
    ///
    /// A request with an `Accept-Encoding` of its own keeps it, and gets the body as it came; unless this is `true`, which
    /// undoes them whoever asked for them. Ranges are never asked for, nor undone, in a coding.
    public var decompresses: Bool?

    /// The version in the request line; HTTP/1.1 by default. Under HTTP/1.0 the connection is not kept, and a body needs
    /// a length.
    public var version = HTTPVersion.http11

    /// Fields of the session, or of Martlet's own, that are not sent.
    public var omittedFields: Set<HTTPField.Name> {
        get { rare?.omittedFields ?? [] }
        set { rare = Rare(omittedFields: newValue, trailers: trailers, proxy: proxy) }
    }

    /// Whether the body is handed over as it stands on the wire: chunk framing and content coding are not undone.
    public var isRaw = false

    /// Fields that follow a chunked body (RFC 9110 §6.5). They are sent only where the body has no known length.
    public var trailers: HTTPFields {
        get { rare?.trailers ?? HTTPFields() }
        set { rare = Rare(omittedFields: omittedFields, trailers: newValue, proxy: proxy) }
    }

    /// Whether the call goes through a proxy; `nil` for the session's word. ``ProxySettings/environment`` is what the
    /// session read when it was made.
    public var proxy: ProxySettings? {
        get { rare?.proxy }
        set { rare = Rare(omittedFields: omittedFields, trailers: trailers, proxy: newValue) }
    }

    /// Whether a request may be sent again on a fresh connection when a kept one turns out to have died, though its
    /// method is not idempotent; `false` by default (RFC 9110 §9.2.2).
    ///
    /// A request with an `Idempotency-Key` field may be in any case, and one of which no byte was written always is.
    public var allowsResendingUnsafeMethods = false

    /// What few calls have: one reference, so that options are copied fast.
    private final class Rare: Sendable {
        let omittedFields: Set<HTTPField.Name>
        let trailers: HTTPFields
        let proxy: ProxySettings?

        init(omittedFields: Set<HTTPField.Name>, trailers: HTTPFields, proxy: ProxySettings?) {
            self.proxy = proxy
            self.omittedFields = omittedFields
            self.trailers = trailers
        }
    }

    private var rare: Rare?

    /// No deviations.
    public init() {}

    /// Deviations; what is not given is the session's.
    public init(
        timeouts: Timeouts? = nil, priority: RequestPriority? = nil, bodyLimit: ByteCount? = nil,
        decompresses: Bool? = nil
    ) {
        self.timeouts = timeouts
        self.priority = priority
        self.bodyLimit = bodyLimit
        self.decompresses = decompresses
    }
}
