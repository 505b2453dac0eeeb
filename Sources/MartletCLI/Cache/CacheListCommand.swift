import ArgumentParser
import Martlet
import MartletCache
import MartletStorage
import MartletWire

/// `martlet cache list`: a line for each entry.
struct CacheListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each entry, by URL.",
        discussion: """
            A line: status, size of the body, age, for how long it is fresh or since when stale, whose it is, type, URL, \
            and the request fields it was chosen by. Control characters are escaped. With --json a line is an object.
            """)

    /// How many entries are looked at before their lines are written.
    private static let batchCount = 64

    @ArgumentParser.OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let cache = try await options.open(CacheNotes())
        let names = try await CacheOptions.read { () throws(StorageError) in try cache.entryNamesByURL() }
        let isJSON = options.json
        var hasFailed = false
        for start in stride(from: 0, to: names.count, by: CacheListCommand.batchCount) {
            let batch = names[start..<min(start + CacheListCommand.batchCount, names.count)]
            let now = CacheOptions.now
            let (lines, errors) = await Console.run {
                CacheListCommand.lines(batch, of: cache, now: now, isJSON: isJSON)
            }
            try await Console.print(lines)
            if await CacheOptions.complain(errors) { hasFailed = true }
        }
        if hasFailed { throw ExitStatus.readFailed }
    }

    /// The lines of some entries. Those that are gone meanwhile have none.
    private static func lines(
        _ names: ArraySlice<EntryName>, of cache: DiskCache, now: WallTime, isJSON: Bool
    ) -> (lines: String, errors: [StorageError]) {
        var (lines, errors) = ("", [StorageError]())
        for name in names {
            switch cache.look(at: name) {
            case .whole(let reader):
                let line = CacheEntryLine(reader, now: now)
                lines += isJSON ? JSONLine.text(line.json) : line.text
            case .damaged(let damage):
                lines +=
                    isJSON
                    ? JSONLine.text(
                        .members([("file", .string(damage.file)), ("damaged", .string("\(damage.fault)"))]))
                    : "damaged  \(damage.file): \(TerminalText.escaped("\(damage.fault)"))"
            case .unreadable(let error):
                errors.append(error)
                continue
            case nil: continue
            }
            lines += "\n"
        }
        return (lines, errors)
    }
}

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
        .members([
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
        .members([
            ("entries", .number(entries)), ("fresh", .number(fresh)), ("stale", .number(stale)),
            ("partitioned", .number(partitioned)), ("damaged", .number(damaged)),
            ("unreadable", .number(unreadable)), ("bytes", .number(occupied)),
            ("body_bytes", .number(bodies)),
            ("oldest_ms", span.map { .number($0.oldest.milliseconds) } ?? .null),
            ("newest_ms", span.map { .number($0.newest.milliseconds) } ?? .null),
            (
                "statuses",
                .members(statuses.sorted { $0.key < $1.key }.map { ("\($0.key)", .number($0.value)) })
            ),
        ])
    }

    private static func size(_ byteCount: UInt64) -> String {
        let short = ProgressText.size(Double(byteCount))
        return byteCount < 1024 ? short : "\(short) (\(byteCount) bytes)"
    }
}
