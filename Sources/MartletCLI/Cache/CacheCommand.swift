import ArgumentParser
import Martlet
import Synchronization

struct CacheCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Inspect, verify or clear the directory of a cache",
        discussion: """
            Other programs can use the cache at the same time. These commands create no directory, do not count as a \
            use of an entry, and evict nothing.

            EXIT CODES:
            0: done
            2: the directory is missing, not a cache, owned by another user, or accessible by others
            23: the output cannot be written, or an entry cannot be removed
            26: an entry cannot be read
            100: verify found damaged entries
            """,
        subcommands: [CacheStatsCommand.self, CacheListCommand.self, CacheVerifyCommand.self, CacheClearCommand.self])
}

struct CacheOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Use this cache directory", valueName: "dir")) var cache: String

    @Flag(help: "Print JSON") var json = false

    mutating func validate() throws {
        guard !cache.isEmpty else { throw ValidationError("option --cache: needs a directory") }
        guard !cache.utf8.contains(0) else { throw ValidationError("option --cache: a path cannot contain a NUL") }
    }

    /// Opens the cache, or reports why it cannot be opened.
    func open(_ notes: CacheWarnings = CacheWarnings()) async throws(ExitStatus) -> DiskCache {
        let directory = cache
        do throws(CacheOpeningError) {
            return try await Console.attempt { () throws(CacheOpeningError) in
                try DiskCache(existing: directory, onEvent: notes.take)
            }
        } catch { throw await ExitStatus.usage.reporting("\(error)") }
    }

    /// Prints a text, or an object as a line of JSON.
    func print(_ text: String, json value: some JSONRepresentable) async throws(ExitStatus) {
        try await Console.print(json ? value.jsonLine + "\n" : text)
    }

    /// Reads from a cache, or reports why it cannot be read.
    static func read<Value: Sendable>(_ body: @escaping @Sendable () throws(StorageError) -> Value)
        async throws(ExitStatus) -> Value
    {
        do throws(StorageError) { return try await Console.attempt(body) } catch {
            throw await ExitStatus.readFailed.reporting("\(error)")
        }
    }

    static func report(_ errors: [StorageError]) async { for error in errors { await Console.report("\(error)") } }
}

struct CacheStatsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stats", abstract: "Count entries and bytes, fresh and stale ones",
        discussion: """
            Sizes are allocated blocks, as for limits. Whether an entry is fresh depends only on its fields: an \
            application may have its own rules for responses without such fields. Bodies are not read: see verify.
            """)

    @OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let cache = try await options.open()
        let now = WallTime.now
        let summary = try await CacheOptions.read { () throws(StorageError) in
            var summary = CacheSummary(now: now)
            for name in try cache.entryNames() { if let entry = cache.inspect(name) { summary.add(entry) } }
            summary.occupied = try cache.occupiedByteCount()
            return summary
        }
        try await options.print(summary.table, json: summary.json)
        if summary.unreadable > 0 { throw ExitStatus.readFailed }
    }
}

struct CacheVerifyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify", abstract: "Read all entries and compare their checksums",
        discussion: """
            Damaged entries are reported and removed, as at their next use, and the exit code is 100. Files of other \
            programs are ignored.
            """)

    @OptionGroup var options: CacheOptions

    mutating func run() async throws {
        let notes = CacheWarnings()
        let cache = try await options.open(notes)
        let result = await Console.run { cache.verify() }
        let (unsorted, errors) = notes.all
        // Sorted, because the order of the file system is arbitrary.
        let damages = unsorted.sorted { $0.file < $1.file }
        let size = ProgressText.size(Double(result.byteCount))
        let text =
            damages.map { "\($0.text)\n" }.joined()
            + "\(result.whole) whole, \(size) of bodies; \(damages.count) damaged\n"
        let json: JSONMembers = [
            "whole": result.whole, "body_bytes": result.byteCount, "damaged": damages.count, "damages": damages,
        ]
        try await options.print(text, json: json)
        await CacheOptions.report(errors)
        if !damages.isEmpty { throw ExitStatus.checksum }
        if !errors.isEmpty { throw ExitStatus.readFailed }
    }
}

struct DamagedEntry: JSONRepresentable, Sendable {
    var file: String
    var error: EntryFormatError
    var text: String { "damaged  \(file): \(TerminalText.escaped("\(error)"))" }
    var json: JSONValue { ["file": .string(file), "damaged": .string("\(error)")] }
}

/// Collects the damaged entries and the file errors of a cache during a command.
final class CacheWarnings: Sendable {
    /// Written by the thread that works on the cache, read by the command.
    private let state = Mutex((damages: [DamagedEntry](), errors: [StorageError]()))

    var all: (damages: [DamagedEntry], errors: [StorageError]) { state.withLock { $0 } }

    func take(_ event: DiskCacheEvent) {
        switch event {
        case .damaged(let file, let error): state.withLock { $0.damages.append(DamagedEntry(file: file, error: error)) }
        case .unavailable(let error): state.withLock { $0.errors.append(error) }
        case .tooLarge, .noRoom, .recovered, .evicted, .indexed: break
        }
    }
}

struct CacheClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries, or those of some URLs",
        discussion: """
            Removes every stored variant of a URL, for all users. A URL that is not cached is not an error. The \
            directory and files of other programs stay. Programs that read a removed entry can read it to its end.
            """)

    @OptionGroup var options: CacheOptions

    @Argument(help: ArgumentHelp("Remove only the entries of these URLs", valueName: "url")) var urls: [String] = []

    mutating func run() async throws {
        // All URLs are checked before anything is removed.
        var targets: [CacheClearing.Target] = []
        for text in urls { targets.append(try await target(text)) }
        let notes = CacheWarnings()
        let cache = try await options.open(notes)
        if targets.isEmpty { try await clear(cache, notes) } else { try await clear(targets, cache, notes) }
    }

    private func clear(_ cache: DiskCache, _ notes: CacheWarnings) async throws {
        let removed = await Console.run { cache.removeAllCounting() }
        await CacheOptions.report(notes.all.errors)
        guard let removed else { throw ExitStatus.writeFailed }
        let count = CacheClearing.Count(entries: removed.entryCount, byteCount: removed.byteCount)
        try await options.print("removed \(count.text)\n", json: count.members)
    }

    private func clear(_ targets: [CacheClearing.Target], _ cache: DiskCache, _ notes: CacheWarnings) async throws {
        let clearing = try await CacheOptions.read { () throws(StorageError) in try CacheClearing(targets, in: cache) }
        let lines = zip(targets, clearing.counts).map { target, count in
            if options.json { return (["url": target.url] + count.members).jsonLine }
            let outcome = count.entries == 0 ? "not in the cache" : "removed \(count.text)"
            return "\(TerminalText.escaped(target.url)): \(outcome)"
        }
        try await Console.print(lines.map { "\($0)\n" }.joined())
        await CacheOptions.report(notes.all.errors + clearing.errors)
        if clearing.hasFailed { throw ExitStatus.writeFailed }
        if !clearing.errors.isEmpty { throw ExitStatus.readFailed }
    }

    private func target(_ text: String) async throws(ExitStatus) -> CacheClearing.Target {
        do throws(HTTPURL.ParseError) {
            return CacheClearing.Target(try HTTPURL(text), asIs: try HTTPURL(text, pathAsIs: true))
        } catch { throw await ExitStatus(error).reporting("\(error)") }
    }
}

/// Removes the entries of some URLs from a cache, for all users.
struct CacheClearing: Sendable {
    struct Target: Sendable {
        /// The URL as in cache keys.
        let url: String
        /// The URL as in cache keys, also with its path as given: requests with `--path-as-is` store it unchanged.
        fileprivate let spellings: Set<String>

        init(_ url: HTTPURL, asIs: HTTPURL) {
            let texts = [url, asIs].map { url in CacheKey(of: url.absoluteString)?.url ?? url.absoluteString }
            self.url = texts[0]
            spellings = Set(texts)
        }
    }

    struct Count: Sendable {
        var entries = 0
        /// The allocated bytes of the entries.
        var byteCount: UInt64 = 0

        var text: String { "\(entries) \(entries == 1 ? "entry" : "entries"), \(ProgressText.size(Double(byteCount)))" }
        var members: JSONMembers { ["entries": entries, "bytes": byteCount] }
    }

    private(set) var counts: [Count]
    /// The errors of entries that could not be read. These may be entries of the targets.
    private(set) var errors: [StorageError] = []
    private(set) var hasFailed = false

    /// Removes the entries. All entries are read, because only an entry's contents include its URL.
    init(_ targets: [Target], in cache: DiskCache) throws(StorageError) {
        counts = Array(repeating: Count(), count: targets.count)
        let places = Dictionary(targets.enumerated().flatMap { place, target in target.spellings.map { ($0, place) } })
        { first, _ in first }
        for name in try cache.entryNames() {
            switch cache.inspect(name) {
            case .whole(let reader):
                guard let place = places[reader.head.key.url] else { continue }
                if cache.remove(reader) {
                    counts[place].entries += 1
                    counts[place].byteCount &+= reader.storedByteCount
                } else {
                    hasFailed = true
                }
            case .unreadable(let error): errors.append(error)
            case .damaged, nil: break
            }
        }
    }
}
