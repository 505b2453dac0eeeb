import MartletCache
import MartletWire

/// A stored response as one line.
struct CacheEntryLine {
    /// How many characters are shown of what tells users apart.
    private static let shownCount = 12

    private let head: StoredHead
    private let byteCount: UInt64
    private let storedByteCount: UInt64
    private let freshness: Freshness

    init(_ reader: EntryReader, now: WallTime) {
        head = reader.head
        byteCount = reader.byteCount
        storedByteCount = reader.storedByteCount
        freshness = Freshness(of: head, now: now)
    }

    /// For people: columns, the URL behind all that is short.
    var text: String {
        let whose = head.key.partition.isEmpty ? "everyone" : CacheEntryLine.short(head.key.partition)
        let columns = [
            ("\(head.status)", 3), (ProgressText.size(Double(byteCount)), 10), ("age \(freshness.age) s", 11),
            (state, 17), (TerminalText.escaped(whose), 13), (TerminalText.escaped(type ?? "-"), 16),
        ]
        var parts = columns.map { text, width in
            text + String(repeating: " ", count: max(0, width - text.count))
        }
        parts.append(TerminalText.escaped(head.key.url))
        for (name, value) in variant {
            let shown = value.map { TerminalText.escaped($0) } ?? "(none)"
            parts.append("[\(TerminalText.escaped(name)): \(shown)]")
        }
        return parts.joined(separator: "  ")
    }

    /// For programs.
    var json: JSONValue {
        .object([
            ("url", .string(head.key.url)), ("status", .number(head.status)), ("bytes", .number(byteCount)),
            ("allocated", .number(storedByteCount)), ("age", .number(freshness.age)),
            ("fresh", .bool(freshness.isFresh)),
            ("ttl", freshness.isClockSetBack ? .null : .number(freshness.timeToLive)),
            ("basis", .string(basis)), ("stored_ms", .number(head.responseTime.milliseconds)),
            (
                "partition",
                head.key.partition.isEmpty ? .null : .string(CacheEntryLine.short(head.key.partition))
            ),
            ("type", .optional(type)),
            ("variant", .array(variant.map { .array([.string($0.name), .optional($0.value)]) })),
        ])
    }

    private var type: String? { head.fields.firstValue(of: "Content-Type") }

    private var state: String {
        if freshness.isClockSetBack { return "stale: clock set back" }
        if freshness.isFresh { return "fresh for \(freshness.timeToLive) s" }
        return "stale since \(-freshness.timeToLive) s"
    }

    private var basis: String {
        switch freshness.basis {
        case .maxAge: "max-age"
        case .expires: "expires"
        case .heuristic: "heuristic"
        case .rule: "rule"
        case .none: "none"
        }
    }

    /// The request fields the response was chosen by; of those that are secret only the beginning of their digests.
    private var variant: [(name: String, value: String?)] {
        head.selections.map { selection in
            let isSecret = HeadText.isSecret(selection.name)
            return (selection.name, isSecret ? selection.value.map(CacheEntryLine.short) : selection.value)
        }
    }

    private static func short(_ text: String) -> String {
        text.count > shownCount ? "\(text.prefix(shownCount))…" : text
    }
}
