import MartletContent

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

    /// Which of the requests of one priority goes first when they wait for a connection; `nil` for the session's word.
    public var order: WaitingOrder?

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
        set { change { $0.omittedFields = newValue } }
    }

    /// Whether the body is handed over as it stands on the wire: chunk framing and content coding are not undone.
    public var isRaw = false

    /// Whether the response's `Content-Length` is passed over: its body ends with the connection, unless it is chunked;
    /// `false` by default.
    ///
    /// It is for servers that announce a length that is wrong. Whether anything is missing cannot be known then, so the
    /// cache has no part in the call, and the connection is not kept.
    public var ignoresContentLength = false

    /// Fields that follow a chunked body (RFC 9110 §6.5). They are sent only where the body has no known length.
    public var trailers: HTTPFields {
        get { rare?.trailers ?? HTTPFields() }
        set { change { $0.trailers = newValue } }
    }

    /// Whether the call goes through a proxy; `nil` for the session's word. ``ProxySettings/environment`` is what the
    /// session read when it was made.
    public var proxy: ProxySettings? {
        get { rare?.proxy }
        set { change { $0.proxy = newValue } }
    }

    /// Whether redirects are followed; `nil` for the session's word.
    public var redirects: RedirectPolicy? {
        get { rare?.redirects }
        set { change { $0.redirects = newValue } }
    }

    /// Whether the call is made again after passing failures; `nil` for the session's word.
    public var retry: RetryPolicy? {
        get { rare?.retry }
        set { change { $0.retry = newValue } }
    }

    /// The request's `Idempotency-Key`, by which a server knows a repetition: with it, methods that are not idempotent are
    /// made again as well. All tries of the call have the same; `nil` for none.
    public var idempotencyKey: IdempotencyKey? {
        get { rare?.idempotencyKey }
        set { change { $0.idempotencyKey = newValue } }
    }

    /// What the answer must be to be taken; `nil` for the session's word, ``ResponseValidator/anything`` for no conditions.
    public var validator: ResponseValidator? {
        get { rare?.validator }
        set { change { $0.validator = newValue } }
    }

    /// How fast the call's bodies may go, besides the limits of the session; as fast as those allow by default.
    public var bandwidth: BandwidthLimit {
        get { rare?.bandwidth ?? .none }
        set { change { $0.bandwidth = newValue } }
    }

    /// The calls that are under one limit of bandwidth with this one, in place of ``bandwidth``.
    package var bandwidthGroup: BandwidthGroup? {
        get { rare?.bandwidthGroup }
        set { change { $0.bandwidthGroup = newValue } }
    }

    /// Whether a request may be sent again on a fresh connection when a kept one turns out to have died, though its
    /// method is not idempotent; `false` by default (RFC 9110 §9.2.2).
    ///
    /// A request with an `Idempotency-Key` field may be in any case, and one of which no byte was written always is.
    public var allowsResendingUnsafeMethods = false

    /// What few calls have and takes more than a byte: options are copied often, and are held by the frames of waiting calls.
    private struct Rare: Sendable {
        var omittedFields: Set<HTTPField.Name> = []
        var trailers = HTTPFields()
        var proxy: ProxySettings?
        var redirects: RedirectPolicy?
        var retry: RetryPolicy?
        var idempotencyKey: IdempotencyKey?
        var validator: ResponseValidator?
        var bandwidth = BandwidthLimit.none
        var bandwidthGroup: BandwidthGroup?
        var settings = SettingsStore()
    }

    /// One reference to it, so that options are copied fast.
    private final class Box: Sendable {
        let content: Rare

        init(_ content: Rare) { self.content = content }
    }

    private var box: Box?

    private var rare: Rare? { box?.content }

    private mutating func change(_ body: (inout Rare) -> Void) {
        var content = rare ?? Rare()
        body(&content)
        box = Box(content)
    }

    /// Whether the call has more to it than one request, by what is set here.
    var hasStages: Bool {
        guard let rare else { return false }
        return rare.retry != nil || rare.settings.hasStages
    }

    /// The settings of features; `nil` if there are none.
    var settings: SettingsStore? { rare?.settings }

    mutating func changeSettings(_ body: (inout SettingsStore) -> Void) { change { body(&$0.settings) } }

    /// No deviations.
    public init() {}

    /// Deviations; what is not given is the session's.
    public init(
        timeouts: Timeouts? = nil, priority: RequestPriority? = nil, bodyLimit: ByteCount? = nil,
        decompresses: Bool? = nil, redirects: RedirectPolicy? = nil, retry: RetryPolicy? = nil,
        idempotencyKey: IdempotencyKey? = nil, validator: ResponseValidator? = nil
    ) {
        self.timeouts = timeouts
        self.priority = priority
        self.bodyLimit = bodyLimit
        self.decompresses = decompresses
        guard redirects != nil || retry != nil || idempotencyKey != nil || validator != nil else { return }
        change { rare in
            rare.redirects = redirects
            rare.retry = retry
            rare.idempotencyKey = idempotencyKey
            rare.validator = validator
        }
    }
}

/// What a request's repetitions are known by (`Idempotency-Key`, draft-ietf-httpapi-idempotency-key-header).
public struct IdempotencyKey: Hashable, Sendable {
    private enum Kind: Hashable, Sendable {
        case random
        case value(String)
    }

    private let kind: Kind

    /// A key of 128 random bits, drawn for each call.
    public static let random = IdempotencyKey(kind: .random)

    /// A key of one's own.
    public static func value(_ text: String) -> IdempotencyKey { IdempotencyKey(kind: .value(text)) }

    /// The key; `nil` for one that is drawn for each call.
    package var text: String? { if case .value(let text) = kind { text } else { nil } }

    /// The fields with the key, unless they have one.
    func added(to fields: HTTPFields) -> HTTPFields {
        guard !fields.contains(.idempotencyKey) else { return fields }
        var fields = fields
        switch kind {
        case .value(let text): fields[.idempotencyKey] = text
        case .random:
            var generator = SystemRandomNumberGenerator()
            let parts = (0..<2).map { _ in
                let digits = String(generator.next(), radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }
            fields[.idempotencyKey] = parts.joined()
        }
        return fields
    }
}
