import ArgumentParser
import Martlet
import MartletCache
import MartletStorage

/// `martlet cache clear`: removes all, or some URLs.
struct CacheClearCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "clear", abstract: "Remove all entries, or those of some URLs.",
        discussion: """
            Of a URL all variants go, whosever they are; that there are none is no error. Files that are not the \
            cache's stay, and so does the folder. Who reads an entry at the moment reads on to its end.
            """)

    @ArgumentParser.OptionGroup var options: CacheOptions

    @Argument(help: ArgumentHelp("Only the entries of these URLs.", valueName: "url")) var urls: [String] = []

    mutating func run() async throws {
        let wanted = try await targets(urls)
        let notes = CacheNotes()
        let cache = try await options.open(notes)
        if wanted.isEmpty { try await clear(cache, notes) } else { try await clear(wanted, cache, notes) }
    }

    private func clear(_ cache: DiskCache, _ notes: CacheNotes) async throws {
        let removed = await Console.run { cache.removeAllCounting() }
        _ = await CacheOptions.complain(notes.errors)
        guard let removed else { throw ExitStatus.writeFailed }
        let count = CacheClearing.Count(entries: removed.entryCount, byteCount: removed.byteCount)
        try await Console.print(
            options.json ? JSONLine.text(.members(count.members)) + "\n" : "removed \(count.text)\n")
    }

    private func clear(_ targets: [CacheClearing.Target], _ cache: DiskCache, _ notes: CacheNotes)
        async throws
    {
        let clearing = try await CacheOptions.read { () throws(StorageError) in
            try CacheClearing(targets, in: cache)
        }
        var lines = ""
        for (target, count) in zip(targets, clearing.counts) {
            if options.json {
                lines += JSONLine.text(.members([("url", .string(target.url))] + count.members))
            } else {
                let outcome = count.entries == 0 ? "not in the cache" : "removed \(count.text)"
                lines += "\(TerminalText.escaped(target.url)): \(outcome)"
            }
            lines += "\n"
        }
        try await Console.print(lines)
        _ = await CacheOptions.complain(notes.errors + clearing.errors)
        if clearing.hasFailed { throw ExitStatus.writeFailed }
        if !clearing.errors.isEmpty { throw ExitStatus.readFailed }
    }

    /// The URLs as keys have them. Before anything is removed, all of them must be some.
    private func targets(_ texts: [String]) async throws(ExitStatus) -> [CacheClearing.Target] {
        var list: [CacheClearing.Target] = []
        for text in texts {
            do throws(HTTPURL.ParseError) {
                let url = try HTTPURL(text)
                list.append(CacheClearing.Target(url, asIs: try HTTPURL(text, pathAsIs: true)))
            } catch {
                await Console.complain("martlet: \(error)\n")
                throw error.code == .unsupportedScheme
                    ? ExitStatus.unsupportedScheme : ExitStatus.malformedURL
            }
        }
        return list
    }
}

/// Removes the entries of some URLs from a cache, whosever they are.
struct CacheClearing: Sendable {
    /// A URL whose entries go.
    struct Target: Sendable {
        /// As keys have it.
        let url: String
        /// That, and its path as it was written, which requests may have kept.
        fileprivate let spellings: Set<String>

        init(_ url: HTTPURL, asIs: HTTPURL) {
            let texts = [url, asIs].map { url in CacheKey(of: url.absoluteString)?.url ?? url.absoluteString }
            self.url = texts[0]
            spellings = Set(texts)
        }
    }

    /// What was removed.
    struct Count: Sendable {
        var entries = 0
        /// What the entries occupied.
        var byteCount: UInt64 = 0

        /// For people.
        var text: String {
            "\(entries) \(entries == 1 ? "entry" : "entries"), \(ProgressText.size(Double(byteCount)))"
        }

        /// For programs.
        var members: [(String, JSONValue)] { [("entries", .number(entries)), ("bytes", .number(byteCount))] }
    }

    /// What was removed of each target.
    private(set) var counts: [Count]
    /// What could not be read, and so may be what was to be removed.
    private(set) var errors: [StorageError] = []
    /// Whether an entry could not be removed.
    private(set) var hasFailed = false

    /// Removes the entries. Whose they are is known by reading them alone, so all are read.
    init(_ targets: [Target], in cache: DiskCache) throws(StorageError) {
        counts = Array(repeating: Count(), count: targets.count)
        var places: [String: Int] = [:]
        for (place, target) in targets.enumerated() {
            for spelling in target.spellings where places[spelling] == nil { places[spelling] = place }
        }
        for name in try cache.entryNames() {
            switch cache.look(at: name) {
            case .whole(let reader):
                guard let place = places[reader.head.key.url] else { continue }
                guard cache.remove(reader) else {
                    hasFailed = true
                    continue
                }
                counts[place].entries += 1
                counts[place].byteCount &+= reader.storedByteCount
            case .unreadable(let error): errors.append(error)
            case .damaged, nil: break
            }
        }
    }
}
