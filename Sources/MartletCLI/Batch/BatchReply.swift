import Martlet
import MartletWire

/// The lines that a batch answers with.
enum BatchReply {
    /// An answer.
    static func line(_ sequence: JSONValue, _ exchange: HTTPExchange) -> [UInt8] {
        let head = exchange.rawHead
        return bytes([
            ("seq", sequence), ("ok", .bool(true)), ("status", .number(head.status)),
            ("reason", .latin1(Array(head.reason.utf8))), ("headers", fields(head.fields)),
            ("body", .latin1(exchange.body)), ("url", .string(exchange.url.absoluteString)),
            (
                "interim",
                .array(exchange.rawInterim.map { .array([.number($0.status), fields($0.fields)]) })
            ),
            ("source", .string(exchange.source.rawValue)),
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

    /// The counts of a pool, and how many descriptors are open.
    static func counts(_ pool: PoolStatus, descriptors: Int?) -> [(String, JSONValue)] {
        [
            (
                "pool",
                .object([
                    ("idle", .number(pool.idle)), ("leased", .number(pool.leased)),
                    ("dialling", .number(pool.dialling)), ("waiting", .number(pool.waiting)),
                    ("opened", .number(pool.opened)), ("reused", .number(pool.reused)),
                ])
            ),
            ("cache", .null), ("descriptors", descriptors.map { .number($0) } ?? .null),
        ]
    }

    private static func bytes(_ members: [(String, JSONValue)]) -> [UInt8] {
        JSONWriter.bytes(.object(members)) + [10]
    }

    private static func fields(_ block: FieldBlock) -> JSONValue {
        .array(
            block.indices.map { index in
                .array([.latin1(Array(block.name(at: index))), .latin1(Array(block.value(at: index)))])
            })
    }

    private static func timing(_ metrics: HTTPMetrics) -> JSONValue {
        .object([
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
