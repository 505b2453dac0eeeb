import Martlet

/// The reply lines of a batch.
enum BatchReply {
    static func line(_ sequence: JSONValue, _ exchange: HTTPExchange) -> String {
        let head = exchange.rawHead
        return line(
            sequence,
            [
                "status": head.status, "reason": JSONValue.latin1(head.reasonBytes),
                "headers": fields(head.fields), "body": JSONValue.latin1(exchange.body),
                "url": exchange.url.absoluteString,
                "interim": exchange.rawInterim.map { [$0.status.json, fields($0.fields)] },
                "source": name(of: exchange.source),
                "trailers": exchange.rawTrailers.map(fields) ?? .array([]),
                "timing": timing(exchange.metrics),
            ])
    }

    static func line(_ sequence: JSONValue, _ fault: BatchError) -> String {
        line(sequence, ["error": fault.kind.rawValue, "message": fault.message], isOK: false)
    }

    static func line(_ sequence: JSONValue, _ members: JSONMembers = [:], isOK: Bool = true) -> String {
        (["seq": sequence, "ok": isOK] + members).jsonLine + "\n"
    }

    /// The source of a response, in the words of the protocol.
    private static func name(of source: HTTPExchange.Source) -> String {
        switch source {
        case .network: "network"
        case .cache: "cache"
        case .validatedCache: "validated"
        case .staleCache: "stale"
        default: source.rawValue
        }
    }

    /// The counts of a pool and of a cache, and the number of open descriptors.
    static func counts(
        _ pool: PoolStatus, _ cache: ResponseCache.Statistics?, descriptors: Int?
    ) -> JSONMembers {
        let poolCounts: JSONMembers = [
            "idle": pool.idle, "leased": pool.leased, "dialling": pool.dialing, "waiting": pool.waiting,
            "opened": pool.opened, "reused": pool.reused,
        ]
        return ["pool": poolCounts, "cache": cache.map(counts), "descriptors": descriptors]
    }

    private static func counts(_ cache: ResponseCache.Statistics) -> JSONMembers {
        [
            "hits": cache.hits, "stale_hits": cache.staleHits, "validated": cache.validated,
            "misses": cache.misses, "stale_on_errors": cache.staleOnErrors, "bypasses": cache.bypasses,
            "shared": cache.shared, "unsatisfiable": cache.unsatisfiable,
            "revalidations": cache.revalidations, "stores": cache.stores, "evictions": cache.evictions,
            "removals": cache.removals, "bytes_served": cache.bytesServed, "bytes_stored": cache.bytesStored,
            "memory_entries": cache.memoryEntries, "memory_bytes": cache.memoryBytes,
            "disk_entries": cache.diskEntries, "disk_bytes": cache.diskBytes,
        ]
    }

    private static func fields(_ block: FieldBlock) -> JSONValue {
        block.indices.map {
            [JSONValue.latin1(Array(block.name(at: $0))), .latin1(Array(block.value(at: $0)))]
        }
        .json
    }

    private static func timing(_ metrics: HTTPMetrics) -> JSONMembers {
        [
            "dns": metrics.dns.map(milliseconds), "connect": metrics.connect.map(milliseconds),
            "tls": metrics.tls.map(milliseconds), "first_byte": metrics.firstByte.map(milliseconds),
            "total": milliseconds(metrics.total),
        ]
    }

    /// Milliseconds with three decimals.
    private static func milliseconds(_ duration: Duration) -> JSONValue {
        let (seconds, attoseconds) = duration.components
        let micros = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        let rest = String(micros % 1000)
        return .number("\(micros / 1000).\(String(repeating: "0", count: max(0, 3 - rest.count)))\(rest)")
    }
}

/// The failure of a request of a batch, in the words of the protocol.
struct BatchError: Error, Sendable {
    /// The kinds of the protocol.
    enum Kind: String, Sendable {
        case malformed = "protocol"
        case truncated, empty, connect, timeout
        case tooLarge = "too_large"
        case tooManyRedirects = "too_many_redirects"
        case decode
        case badURL = "bad_url"
        case unsupported, tls, cancelled, other
    }

    var kind: Kind
    var message: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// The fault for any error of a request.
    init(_ error: any Error) {
        switch error {
        case let fault as BatchError: self = fault
        case is CancellationError: self.init(.cancelled, "the request was cancelled")
        case let error as HTTPError: self.init(BatchError.kind(of: error), error.message)
        case let error as HTTPURL.ParseError: self.init(.badURL, error.description)
        case let error as UsageError: self.init(.unsupported, error.description)
        default: self.init(.other, "\(error)")
        }
    }

    private static func kind(of error: HTTPError) -> Kind {
        switch error.code {
        case .protocolViolation, .limitExceeded, .unacceptableContentType, .unacceptableBody,
            .authenticationFailed:
            .malformed
        case .truncated: .truncated
        case .emptyResponse: .empty
        case .connectionLost: error.phase == .receivingBody ? .truncated : .empty
        case .resolutionFailed, .connectFailed, .proxyFailed: .connect
        case .timedOut: .timeout
        case .bodyTooLarge: .tooLarge
        case .contentDecodingFailed: .decode
        case .invalidURL, .redirectRefused: .badURL
        case .tooManyRedirects: .tooManyRedirects
        case .tlsFailed: isTruncation(error) ? .truncated : .tls
        default: .other
        }
    }

    /// Whether the peer cut an established TLS connection.
    private static func isTruncation(_ error: HTTPError) -> Bool {
        (error.underlying as? TLSError)?.kind == .truncated && error.phase != .tlsHandshake
    }
}
