import MartletCache
import MartletWire

/// What a cache holds, added up entry by entry.
struct CacheSurvey: Sendable {
    /// The present, by which entries are fresh or stale.
    let now: WallTime
    /// What the cache's files occupy, in bytes.
    var occupied: UInt64 = 0
    /// Entries that are whole, as far as can be told without their bodies.
    private(set) var entries = 0
    /// What their bodies come to.
    private(set) var bodies: UInt64 = 0
    private(set) var fresh = 0
    private(set) var stale = 0
    /// Entries of one user's: those of a partition.
    private(set) var partitioned = 0
    /// Files that should be entries and are not.
    private(set) var damaged = 0
    /// Entries that the file system kept from being read.
    private(set) var unreadable = 0
    /// When the entries came or were validated: first and last.
    private(set) var span: (oldest: WallTime, newest: WallTime)?
    /// How many entries there are of each status.
    private(set) var statuses: [Int: Int] = [:]

    init(now: WallTime) { self.now = now }

    /// Adds what was seen.
    mutating func add(_ sight: EntrySight) {
        switch sight {
        case .damaged: damaged += 1
        case .unreadable: unreadable += 1
        case .whole(let reader):
            let head = reader.head
            entries += 1
            bodies &+= reader.byteCount
            if Freshness(of: head, now: now).isFresh { fresh += 1 } else { stale += 1 }
            if !head.key.partition.isEmpty { partitioned += 1 }
            statuses[head.status, default: 0] += 1
            let time = head.responseTime
            span = (oldest: min(span?.oldest ?? time, time), newest: max(span?.newest ?? time, time))
        }
    }

    /// A line for each number.
    var table: String {
        var rows = [
            ("entries", "\(entries)"), ("fresh", "\(fresh)"), ("stale", "\(stale)"),
            ("of one user", "\(partitioned)"), ("damaged", "\(damaged)"),
        ]
        if unreadable > 0 { rows.append(("unreadable", "\(unreadable)")) }
        rows.append(("occupied", CacheSurvey.size(occupied)))
        rows.append(("bodies", CacheSurvey.size(bodies)))
        if let span {
            rows.append(("oldest", HTTPDate(secondsSinceEpoch: span.oldest.seconds).text))
            rows.append(("newest", HTTPDate(secondsSinceEpoch: span.newest.seconds).text))
        }
        for (status, count) in statuses.sorted(by: { $0.key < $1.key }) {
            rows.append(("status \(status)", "\(count)"))
        }
        return rows.map { name, value in
            name + String(repeating: " ", count: max(1, 13 - name.count)) + value + "\n"
        }.joined()
    }

    /// All of it; moments are milliseconds since 1970.
    var json: JSONValue {
        .object([
            ("entries", .number(entries)), ("fresh", .number(fresh)), ("stale", .number(stale)),
            ("partitioned", .number(partitioned)), ("damaged", .number(damaged)),
            ("unreadable", .number(unreadable)), ("bytes", .number(occupied)),
            ("body_bytes", .number(bodies)),
            ("oldest_ms", span.map { .number($0.oldest.milliseconds) } ?? .null),
            ("newest_ms", span.map { .number($0.newest.milliseconds) } ?? .null),
            (
                "statuses",
                .object(statuses.sorted { $0.key < $1.key }.map { ("\($0.key)", .number($0.value)) })
            ),
        ])
    }

    private static func size(_ byteCount: UInt64) -> String {
        let short = ProgressText.size(Double(byteCount))
        return byteCount < 1024 ? short : "\(short) (\(byteCount) bytes)"
    }
}
