import ArgumentParser
import Martlet

/// `martlet cache clear`: removes all entries, or those of some URLs.
struct CacheClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries, or those of some URLs.",
        discussion: """
            Of a URL all variants go, whosever they are; that there are none is no error. Files that are not the \
            cache's stay, and so does the folder. Who reads an entry at the moment reads on to its end.
            """)

    @OptionGroup var options: CacheOptions

    @Argument(help: ArgumentHelp("Only the entries of these URLs.", valueName: "url")) var urls: [String] = []

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

    private func clear(_ targets: [CacheClearing.Target], _ cache: DiskCache, _ notes: CacheWarnings)
        async throws
    {
        let clearing = try await CacheOptions.read { () throws(StorageError) in
            try CacheClearing(targets, in: cache)
        }
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
        } catch {
            await Console.report("\(error)")
            throw ExitStatus(error)
        }
    }
}

/// Removes the entries of some URLs from a cache, for all users.
struct CacheClearing: Sendable {
    struct Target: Sendable {
        /// The URL as in keys.
        let url: String
        /// The URL as in keys, and with its path as it was written, which requests may have kept.
        fileprivate let spellings: Set<String>

        init(_ url: HTTPURL, asIs: HTTPURL) {
            let texts = [url, asIs].map { url in CacheKey(of: url.absoluteString)?.url ?? url.absoluteString }
            self.url = texts[0]
            spellings = Set(texts)
        }
    }

    /// The number of removed entries.
    struct Count: Sendable {
        var entries = 0
        /// The allocated bytes of the entries.
        var byteCount: UInt64 = 0

        var text: String {
            "\(entries) \(entries == 1 ? "entry" : "entries"), \(ProgressText.size(Double(byteCount)))"
        }

        var members: JSONMembers { ["entries": entries, "bytes": byteCount] }
    }

    /// The removed entries of each target.
    private(set) var counts: [Count]
    /// The entries that could not be read, which may be entries of the targets.
    private(set) var errors: [StorageError] = []
    /// Whether an entry could not be removed.
    private(set) var hasFailed = false

    /// Removes the entries. All entries are read, since only their contents tell their URLs.
    init(_ targets: [Target], in cache: DiskCache) throws(StorageError) {
        counts = Array(repeating: Count(), count: targets.count)
        let places = Dictionary(
            targets.enumerated().flatMap { place, target in target.spellings.map { ($0, place) } }
        ) { first, _ in first }
        for name in try cache.entryNames() {
            switch cache.look(at: name) {
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
