import ArgumentParser
import Martlet

struct CacheListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each entry, sorted by URL",
        discussion: """
            A line has the status, body size, age, remaining freshness or staleness, user, media type, URL, and the \
            request fields that select the entry. Control characters are escaped. With --json each line is an object.
            """)

    /// The number of entries that are read before their lines are written.
    private static let batchCount = 64

    @OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let cache = try await options.open()
        let names = try await CacheOptions.read { () throws(StorageError) in try cache.entryNamesByURL() }
        let isJSON = options.json
        var hasFailed = false
        for start in stride(from: 0, to: names.count, by: CacheListCommand.batchCount) {
            let batch = names[start..<min(start + CacheListCommand.batchCount, names.count)]
            let now = WallTime.now
            let (lines, errors) = await Console.run {
                CacheListCommand.lines(batch, of: cache, now: now, isJSON: isJSON)
            }
            try await Console.print(lines)
            await CacheOptions.report(errors)
            if !errors.isEmpty { hasFailed = true }
        }
        if hasFailed { throw ExitStatus.readFailed }
    }

    /// The lines of some entries; entries that no longer exist are skipped.
    private static func lines(_ names: ArraySlice<EntryName>, of cache: DiskCache, now: WallTime, isJSON: Bool) -> (
        lines: String, errors: [StorageError]
    ) {
        var (lines, errors) = ("", [StorageError]())
        for name in names {
            switch cache.inspect(name) {
            case .whole(let reader):
                let line = CacheEntryLine(reader, now: now)
                lines += (isJSON ? line.members.jsonLine : line.text) + "\n"
            case .damaged(let damage):
                let entry = DamagedEntry(file: damage.file, error: damage.error)
                lines += (isJSON ? entry.jsonLine : entry.text) + "\n"
            case .unreadable(let error): errors.append(error)
            case nil: break
            }
        }
        return (lines, errors)
    }
}

/// A stored response as one line.
struct CacheEntryLine {
    private let reader: EntryReader
    private let freshness: Freshness
    private var head: StoredHead { reader.head }

    init(_ reader: EntryReader, now: WallTime) {
        self.reader = reader
        freshness = Freshness(of: reader.head, now: now)
    }

    var text: String {
        let columns = [
            ("\(head.status)", 3), (ProgressText.size(Double(reader.byteCount)), 10), ("age \(freshness.age) s", 11),
            (state, 17), (TerminalText.escaped(partition ?? "everyone"), 13), (TerminalText.escaped(type ?? "-"), 16),
        ]
        var parts = columns.map { text, width in text + String(repeating: " ", count: max(0, width - text.count)) }
        parts.append(TerminalText.escaped(head.key.url))
        for (name, value) in variant {
            let shown = value.map { TerminalText.escaped($0) } ?? "(none)"
            parts.append("[\(TerminalText.escaped(name)): \(shown)]")
        }
        return parts.joined(separator: "  ")
    }

    var members: JSONMembers {
        [
            "url": head.key.url, "status": head.status, "bytes": reader.byteCount, "allocated": reader.storedByteCount,
            "age": freshness.age, "fresh": freshness.isFresh, "ttl": timeToLive, "basis": basis,
            "stored_ms": head.responseTime.milliseconds, "partition": partition, "type": type,
            "variant": variant.map { [$0.name, $0.value] },
        ]
    }

    private var timeToLive: Int64? { freshness.isClockSetBack ? nil : freshness.timeToLive }
    private var type: String? { head.fields.firstValue(of: "Content-Type") }

    /// The beginning of the user's partition; `nil` for an entry for all users.
    private var partition: String? { head.key.partition.isEmpty ? nil : CacheEntryLine.short(head.key.partition) }

    private var state: String {
        if freshness.isClockSetBack { return "stale: clock set back" }
        if freshness.isFresh { return "fresh for \(freshness.timeToLive) s" }
        return "stale for \(-freshness.timeToLive) s"
    }

    private var basis: String { freshness.basis == .maxAge ? "max-age" : "\(freshness.basis)" }

    /// The request fields that select the response. For secret ones only the beginning of their digests is shown.
    private var variant: [(name: String, value: String?)] {
        head.selections.map { selection in
            let isSecret = HeadText.isSecret(selection.name)
            return (selection.name, isSecret ? selection.value.map(CacheEntryLine.short) : selection.value)
        }
    }

    private static func short(_ text: String) -> String { text.count > 12 ? "\(text.prefix(12))…" : text }
}

/// A summary of the contents of a cache, computed entry by entry.
struct CacheSummary: Sendable {
    private let now: WallTime
    /// The allocated bytes of the cache's files.
    var occupied: UInt64 = 0
    /// The number of intact entries, judged without reading their bodies.
    private var entries = 0
    private var bodies: UInt64 = 0
    private var fresh = 0
    private var stale = 0
    private var partitioned = 0
    /// The number of files with the name of an entry and invalid contents.
    private var damaged = 0
    /// The number of entries that the file system could not read.
    private(set) var unreadable = 0
    /// The first and the last time at which an entry was stored or validated.
    private var span: (oldest: WallTime, newest: WallTime)?
    private var statuses: [Int: Int] = [:]

    init(now: WallTime) { self.now = now }

    mutating func add(_ inspection: EntryInspection) {
        switch inspection {
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

    var table: String {
        var rows = [
            ("entries", "\(entries)"), ("fresh", "\(fresh)"), ("stale", "\(stale)"), ("of one user", "\(partitioned)"),
            ("damaged", "\(damaged)"),
        ]
        if unreadable > 0 { rows.append(("unreadable", "\(unreadable)")) }
        rows += [("occupied", CacheSummary.size(occupied)), ("bodies", CacheSummary.size(bodies))]
        if let span {
            rows += [("oldest", span.oldest), ("newest", span.newest)].map {
                ($0, HTTPDate(secondsSinceEpoch: $1.seconds).text)
            }
        }
        rows += statuses.sorted { $0.key < $1.key }.map { ("status \($0)", "\($1)") }
        return rows.map { name, value in name + String(repeating: " ", count: max(1, 13 - name.count)) + value + "\n" }
            .joined()
    }

    /// The JSON form; times are milliseconds since 1970.
    var json: JSONMembers {
        let counts = statuses.sorted { $0.key < $1.key }.map { ("\($0)", $1.json) }
        return [
            "entries": entries, "fresh": fresh, "stale": stale, "partitioned": partitioned, "damaged": damaged,
            "unreadable": unreadable, "bytes": occupied, "body_bytes": bodies, "oldest_ms": span?.oldest.milliseconds,
            "newest_ms": span?.newest.milliseconds, "statuses": JSONMembers(counts),
        ]
    }

    private static func size(_ byteCount: UInt64) -> String {
        let short = ProgressText.size(Double(byteCount))
        return byteCount < 1024 ? short : "\(short) (\(byteCount) bytes)"
    }
}
