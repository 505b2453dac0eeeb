import Martlet
import MartletWire

/// The lines that a batch answers with.
enum BatchReply {
    /// An answer.
    static func line(_ sequence: JSONValue, _ exchange: HTTPExchange) -> [UInt8] {
        let head = exchange.rawHead
        return bytes([
            ("seq", sequence), ("ok", .bool(true)), ("status", .number(head.status)),
            ("reason", .latin1(head.reasonBytes)), ("headers", fields(head.fields)),
            ("body", .latin1(exchange.body)), ("url", .string(exchange.url.absoluteString)),
            ("interim", .array(exchange.rawInterim.map { .array([.number($0.status), fields($0.fields)]) })),
            ("source", .string(name(of: exchange.source))),
            ("trailers", exchange.rawTrailers.map(fields) ?? .array([])),
            ("timing", timing(exchange.metrics)),
        ])
    }

    /// A failure.
    static func line(_ sequence: JSONValue, _ fault: BatchFault) -> [UInt8] {
        bytes([
            ("seq", sequence), ("ok", .bool(false)), ("error", .string(fault.kind.rawValue)),
            ("message", .string(fault.message)),
        ])
    }

    /// That something was done.
    static func line(_ sequence: JSONValue, _ members: [(String, JSONValue)] = []) -> [UInt8] {
        bytes([("seq", sequence), ("ok", .bool(true))] + members)
    }

    /// Where an answer came from, in the words of the protocol.
    private static func name(of source: HTTPExchange.Source) -> String {
        switch source {
        case .network: "network"
        case .cache: "cache"
        case .validatedCache: "validated"
        case .staleCache: "stale"
        default: source.rawValue
        }
    }

    /// The counts of a pool and of a cache, and how many descriptors are open.
    static func counts(
        _ pool: PoolStatus, _ cache: ResponseCache.Statistics?, descriptors: Int?
    ) -> [(String, JSONValue)] {
        [
            (
                "pool",
                .members([
                    ("idle", .number(pool.idle)), ("leased", .number(pool.leased)),
                    ("dialling", .number(pool.dialling)), ("waiting", .number(pool.waiting)),
                    ("opened", .number(pool.opened)), ("reused", .number(pool.reused)),
                ])
            ),
            ("cache", cache.map(counts) ?? .null),
            ("descriptors", descriptors.map { .number($0) } ?? .null),
        ]
    }

    private static func counts(_ cache: ResponseCache.Statistics) -> JSONValue {
        .members([
            ("hits", .number(cache.hits)), ("stale_hits", .number(cache.staleHits)),
            ("validated", .number(cache.validated)), ("misses", .number(cache.misses)),
            ("stale_on_errors", .number(cache.staleOnErrors)), ("bypasses", .number(cache.bypasses)),
            ("shared", .number(cache.shared)), ("unsatisfiable", .number(cache.unsatisfiable)),
            ("revalidations", .number(cache.revalidations)), ("stores", .number(cache.stores)),
            ("evictions", .number(cache.evictions)), ("removals", .number(cache.removals)),
            ("bytes_served", .number(cache.bytesServed)), ("bytes_stored", .number(cache.bytesStored)),
            ("memory_entries", .number(cache.memoryEntries)), ("memory_bytes", .number(cache.memoryBytes)),
            ("disk_entries", .number(cache.diskEntries)), ("disk_bytes", .number(cache.diskBytes)),
        ])
    }

    private static func bytes(_ members: [(String, JSONValue)]) -> [UInt8] {
        Array((JSONLine.text(.members(members)) + "\n").utf8)
    }

    private static func fields(_ block: FieldBlock) -> JSONValue {
        .array(
            block.indices.map { index in
                .array([.latin1(Array(block.name(at: index))), .latin1(Array(block.value(at: index)))])
            })
    }

    private static func timing(_ metrics: HTTPMetrics) -> JSONValue {
        .members([
            ("dns", milliseconds(metrics.dns)), ("connect", milliseconds(metrics.connect)),
            ("tls", milliseconds(metrics.tls)), ("first_byte", milliseconds(metrics.firstByte)),
            ("total", milliseconds(metrics.total)),
        ])
    }

    /// Milliseconds with three decimals; null for what did not happen.
    private static func milliseconds(_ duration: Duration?) -> JSONValue {
        guard let duration else { return .null }
        let (seconds, attoseconds) = duration.components
        let micros = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        let rest = String(micros % 1000)
        return .number("\(micros / 1000).\(String(repeating: "0", count: max(0, 3 - rest.count)))\(rest)")
    }
}

/// Why a request of a batch came to nothing, in the words of the protocol.
struct BatchFault: Error, Sendable {
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

    /// The kind.
    var kind: Kind
    /// What was wrong.
    var message: String

    init(_ kind: Kind, _ message: String) {
        self.kind = kind
        self.message = message
    }

    /// Any error of a call.
    init(_ error: any Error) {
        switch error {
        case let fault as BatchFault: self = fault
        case is CancellationError: self.init(.cancelled, "the request was cancelled")
        case let error as HTTPError: self.init(BatchFault.kind(of: error), error.message)
        default: self.init(.other, "\(error)")
        }
    }

    private static func kind(of error: HTTPError) -> Kind {
        switch error.code {
        case .protocolViolation, .limitExceeded, .unacceptableContentType, .unacceptableBody: .malformed
        case .truncated: .truncated
        case .emptyResponse: .empty
        case .connectionLost: error.phase == .receivingBody ? .truncated : .empty
        case .resolutionFailed, .connectFailed, .proxyFailed: .connect
        case .timedOut: .timeout
        case .bodyTooLarge: .tooLarge
        case .contentDecodingFailed: .decode
        case .invalidURL, .redirectRefused: .badURL
        case .tooManyRedirects: .tooManyRedirects
        case .authenticationFailed: .malformed
        case .tlsFailed: isTruncation(error) ? .truncated : .tls
        default: .other
        }
    }

    /// Whether the peer cut a TLS connection that had stood.
    private static func isTruncation(_ error: HTTPError) -> Bool {
        (error.underlying as? TLSError)?.kind == .truncated && error.phase != .securing
    }
}
